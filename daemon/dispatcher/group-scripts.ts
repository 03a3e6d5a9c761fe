/** What the dispatcher does to its group, and to the dead letters, in one piece. ARGV begins as in scripts.ts. */
import type { Script } from '../store/redis/connection.js';
import { HEAD } from './scripts.js';

/** @returns 1 when there was no group. What is in the stream already is for it. */
export const CREATE_GROUP: Script = {
  name: 'llmpCreateGroup',
  lua: `${HEAD}
local created = redis.pcall('XGROUP', 'CREATE', key, group, '0', 'MKSTREAM', 'ENTRIESREAD', '0')
if type(created) == 'table' and created.err and not string.find(created.err, 'BUSYGROUP') then
  -- Before Redis 7, which counts what was read.
  created = redis.pcall('XGROUP', 'CREATE', key, group, '0', 'MKSTREAM')
end
if not created.err then return 1 end
if string.find(created.err, 'BUSYGROUP') then return 0 end
return created
`,
};

/**
 * How far behind the group is. Redis' own numbers go wrong when unread entries are trimmed: it counts them as still to come, for ever.
 * What is missing between what was added, what was read and what is there was trimmed unread. It is returned once, to whichever
 * dispatcher asks first, and the group's count is put right.
 *
 * ARGV: the key of dead letters. @returns [lag, pending, trimmed unread, dead letters]; before Redis 7 lag and trimmed are -1.
 */
export const MEASURE: Script = {
  name: 'llmpMeasure',
  lua: `${HEAD}
local function fieldsOf(list)
  local fields = {}
  for i = 1, #list, 2 do fields[list[i]] = list[i + 1] end
  return fields
end
local function isBehind(one, other)
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
if not isBehind(last, stream['last-generated-id']) then unread = 0
elseif length == 0 or isBehind(last, first) then unread = length end
if not unread then return { added - read, its.pending, 0, dead } end
local trimmed = added - read - unread
if trimmed ~= 0 then redis.call('XGROUP', 'SETID', key, group, last, 'ENTRIESREAD', added - unread) end
return { unread, its.pending, math.max(0, trimmed), dead }
`,
};

/** Removes consumers that are gone: idle for so long, with nothing pending; or this one. ARGV: idle ms, or -1 for this one. @returns how many. */
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
 * Puts dead letters back into the stream as they were, oldest first. ARGV: the key of dead letters, the id of the last one,
 * how many at most. @returns how many it put back.
 */
export const REPLAY: Script = {
  name: 'llmpReplay',
  lua: `${HEAD}
local OURS = 6
local letters = redis.call('XRANGE', ARGV[4], '-', ARGV[5], 'COUNT', ARGV[6])
for _, letter in ipairs(letters) do
  redis.call('XADD', key, '*', unpack(letter[2], 1, #letter[2] - OURS))
  redis.call('XDEL', ARGV[4], letter[1])
end
return #letters
`,
};

/** ARGV: the key of dead letters. @returns the id of the newest, or nothing. */
export const NEWEST_DEAD: Script = {
  name: 'llmpNewestDead',
  lua: `
local newest = redis.call('XREVRANGE', ARGV[4], '+', '-', 'COUNT', 1)[1]
return newest and newest[1]
`,
};
