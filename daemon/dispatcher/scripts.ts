/**
 * What the dispatcher does to the stream in one piece. Redis' own delivery count is the one that matters: it is raised when an
 * event is taken for a delivery, so that one which kills whoever delivers it gives itself away, and lowered again when the back
 * end was away, for which no event is to blame.
 *
 * ARGV of each: the stream's key, the group, this consumer; then its own.
 */
import type { Script } from '../store/redis/connection.js';

const HEAD = `
local key, group, me = ARGV[1], ARGV[2], ARGV[3]
local function owned(id)
  return redis.call('XPENDING', key, group, id, id, 1, me)[1]
end
`;

/**
 * A dead letter has the fields of its entry, and ours behind them, so that a replay can leave those out. The oldest make room for
 * more than are to be kept; how many did is returned. An entry that is gone is made again from what is known of it.
 */
const SET_ASIDE = `
local function setAside(deadKey, mostKept, id, deliveries, why, json)
  local entry = redis.call('XRANGE', key, id, id)[1]
  local fields = entry and entry[2] or json and { 'event', json }
  redis.call('XACK', key, group, id)
  if not fields then return -1 end
  for _, it in ipairs({ 'stream_id', id, 'deliveries', deliveries, 'why', why }) do
    fields[#fields + 1] = it
  end
  local before = redis.call('XLEN', deadKey)
  redis.call('XADD', deadKey, 'MAXLEN', '~', mostKept, '*', unpack(fields))
  return before + 1 - redis.call('XLEN', deadKey)
end
`;

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

/** Own pending entries behind an id: `[id, deliveries]` each. ARGV: the id, how many. */
export const LIST_OWN: Script = {
  name: 'llmpListOwn',
  lua: `${HEAD}
local listed = {}
for i, it in ipairs(redis.call('XPENDING', key, group, ARGV[4], '+', ARGV[5], me)) do
  listed[i] = { it[1], it[4] }
end
return listed
`,
};

/** Makes entries ours that nobody has answered for; no delivery yet. ARGV: idle ms, cursor, how many. @returns [next cursor, ids, how many were gone]. */
export const CLAIM: Script = {
  name: 'llmpClaim',
  lua: `${HEAD}
local reply = redis.call('XAUTOCLAIM', key, group, me, ARGV[4], ARGV[5], 'COUNT', ARGV[6], 'JUSTID')
return { reply[1], reply[2], reply[3] and #reply[3] or 0 }
`,
};

/**
 * Takes own pending entries for a delivery, which counts. ARGV: the key of dead letters, how many are kept, the most deliveries of
 * an entry, from how many on it is taken alone only, whether this is alone (0 or 1), ids.
 *
 * @returns for each `[id, what, deliveries, fields]`; `what` is `taken`, `alone` (left), `dead` (set aside), `trimmed` or `lost`.
 */
export const TAKE: Script = {
  name: 'llmpTake',
  lua: `${HEAD}${SET_ASIDE}
local deadKey, mostKept, most, aloneFrom, isAlone = ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1'
local function take(id)
  local pending = owned(id)
  if not pending then return { id, 'lost' } end
  local deliveries = pending[4]
  if deliveries >= most then
    local pushedOut = setAside(deadKey, mostKept, id, deliveries, 'never answered for')
    if pushedOut < 0 then return { id, 'trimmed' } end
    return { id, 'dead', deliveries, {}, pushedOut }
  end
  if deliveries >= aloneFrom and not isAlone then return { id, 'alone', deliveries } end
  local entry = redis.call('XCLAIM', key, group, me, 0, id)[1]
  if not entry then
    redis.call('XACK', key, group, id) -- Redis 7 has dropped it already.
    return { id, 'trimmed' }
  end
  return { id, 'taken', deliveries + 1, entry[2] }
end
local taken = {}
for i = 9, #ARGV do
  taken[#taken + 1] = take(ARGV[i])
end
return taken
`,
};

/** Refreshes the claim on own entries, and says how often they were delivered. ARGV: idle ms, then id and count of each. @returns those that are another's by now. */
export const HOLD: Script = {
  name: 'llmpHold',
  lua: `${HEAD}
local lost = {}
for i = 5, #ARGV, 2 do
  local id = ARGV[i]
  if owned(id) then
    redis.call('XCLAIM', key, group, me, 0, id, 'IDLE', ARGV[4], 'RETRYCOUNT', ARGV[i + 1], 'JUSTID')
  elseif redis.call('XPENDING', key, group, id, id, 1)[1] then
    lost[#lost + 1] = id
  end
end
return lost
`,
};

/** ARGV: ids. */
export const ACKNOWLEDGE: Script = {
  name: 'llmpAcknowledge',
  lua: `${HEAD}
return redis.call('XACK', key, group, unpack(ARGV, 4))
`,
};

/** ARGV: the key of dead letters, how many are kept, id, deliveries, why, the event. @returns how many dead letters it pushed out. */
export const SET_EVENT_ASIDE: Script = {
  name: 'llmpSetAside',
  lua: `${HEAD}${SET_ASIDE}
return setAside(ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9] ~= '' and ARGV[9])
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
