/** Lua scripts on the consumer group and on the dead letters. ARGV begins as in scripts.ts. */
import type { Script } from '../store/redis/connection.js';
import { HEAD } from './scripts.js';

/** Creates the group, which starts at the beginning of the stream. @returns 1 if it did not exist. */
export const CREATE_GROUP: Script = {
  name: 'llmpCreateGroup',
  lua: `${HEAD}
local created = redis.pcall('XGROUP', 'CREATE', key, group, '0', 'MKSTREAM', 'ENTRIESREAD', '0')
if type(created) == 'table' and created.err and not string.find(created.err, 'BUSYGROUP') then
  -- Redis before version 7 does not know ENTRIESREAD.
  created = redis.pcall('XGROUP', 'CREATE', key, group, '0', 'MKSTREAM')
end
if not created.err then return 1 end
if string.find(created.err, 'BUSYGROUP') then return 0 end
return created
`,
};

/**
 * Measures the lag of the group. The numbers of Redis are wrong after unread entries were trimmed: it counts those as unread permanently. The
 * entries that were added, but neither read nor still present, were trimmed unread. Their number is returned once, to the dispatcher that
 * asks first, and the script corrects the count of the group.
 *
 * ARGV: the key of the dead letters. @returns [lag, pending, trimmed unread, dead letters]; lag and trimmed are -1 before Redis 7.
 */
export const MEASURE: Script = {
  name: 'llmpMeasure',
  lua: `${HEAD}
local function fieldsOf(list)
  local fields = {}
  for i = 1, #list, 2 do fields[list[i]] = list[i + 1] end
  return fields
end
local function isBefore(one, other)
  local oneMs, oneSeq = string.match(one, '(%d+)-(%d+)')
  local otherMs, otherSeq = string.match(other, '(%d+)-(%d+)')
  if oneMs ~= otherMs then return tonumber(oneMs) < tonumber(otherMs) end
  return tonumber(oneSeq) < tonumber(otherSeq)
end
local dead = redis.call('XLEN', ARGV[4])
local its
for _, it in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  local fields = fieldsOf(it)
  if fields.name == group then its = fields end
end
if not its then return redis.error_reply('NOGROUP no such group') end
local stream = fieldsOf(redis.call('XINFO', 'STREAM', key))
local added, read, length = stream['entries-added'], its['entries-read'], stream.length
if not added or not read then return { -1, its.pending, -1, dead } end
local last, first = its['last-delivered-id'], stream['recorded-first-entry-id']
local unread = nil
if not isBefore(last, stream['last-generated-id']) then unread = 0
elseif length == 0 or isBefore(last, first) then unread = length end
if not unread then return { added - read, its.pending, 0, dead } end
local trimmed = added - read - unread
if trimmed ~= 0 then redis.call('XGROUP', 'SETID', key, group, last, 'ENTRIESREAD', added - unread) end
return { unread, its.pending, math.max(0, trimmed), dead }
`,
};

/** Removes consumers with nothing pending: this one, or all others that are idle. ARGV: the idle time in ms, or -1 for this one. @returns how many. */
export const DROP_CONSUMERS: Script = {
  name: 'llmpDropConsumers',
  lua: `${HEAD}
local idleMs, dropped = tonumber(ARGV[4]), 0
for _, it in ipairs(redis.call('XINFO', 'CONSUMERS', key, group)) do
  local fields = {}
  for i = 1, #it, 2 do fields[it[i]] = it[i + 1] end
  local isMe = fields.name == me
  local isGone = (idleMs < 0 and isMe) or (idleMs >= 0 and not isMe and fields.idle >= idleMs)
  if isGone and fields.pending == 0 then
    redis.call('XGROUP', 'DELCONSUMER', key, group, fields.name)
    dropped = dropped + 1
  end
end
return dropped
`,
};

/**
 * Moves dead letters back to the stream with their original fields, oldest first. ARGV: the key of the dead letters, the ID of the last one to
 * move, the maximum number. @returns how many it moved.
 */
export const REPLAY: Script = {
  name: 'llmpReplay',
  lua: `${HEAD}
local OWN_FIELDS = 6 -- Names and values that moveToDeadLetters in scripts.ts appended.
local letters = redis.call('XRANGE', ARGV[4], '-', ARGV[5], 'COUNT', ARGV[6])
for _, letter in ipairs(letters) do
  redis.call('XADD', key, '*', unpack(letter[2], 1, #letter[2] - OWN_FIELDS))
  redis.call('XDEL', ARGV[4], letter[1])
end
return #letters
`,
};

/** ARGV: the key of the dead letters. @returns the ID of the newest, or nothing. */
export const NEWEST_DEAD: Script = {
  name: 'llmpNewestDead',
  lua: `
local newest = redis.call('XREVRANGE', ARGV[4], '+', '-', 'COUNT', 1)[1]
return newest and newest[1]
`,
};
