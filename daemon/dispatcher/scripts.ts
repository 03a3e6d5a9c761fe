/**
 * Lua scripts on the event stream, its consumer group and the dead letters. Redis keeps the delivery count of an event. The count is raised before a delivery, so that an event that
 * crashes its dispatcher is found out, and lowered again if the backend was unavailable, because no event is to blame for that.
 *
 * ARGV of each script: the key of the stream, the group, this consumer, then its own arguments.
 */
import type { Script } from '../store/redis/connection.js';

const HEAD = `
local key, group, me = ARGV[1], ARGV[2], ARGV[3]
local function owned(id)
  return redis.call('XPENDING', key, group, id, id, 1, me)[1]
end
local function fieldsOf(list)
  local fields = {}
  for i = 1, #list, 2 do fields[list[i]] = list[i + 1] end
  return fields
end
`;

/**
 * Moves an entry to the dead letters. A dead letter has the fields of the entry, followed by our own fields, which a replay removes again. If the
 * entry was trimmed, it is restored from `json`. The oldest dead letters above the maximum are evicted. Returns how many were evicted, or -1 if
 * nothing of the entry is left.
 */
const MOVE_FUNCTION = `
local function moveToDeadLetters(deadKey, maxLetters, id, deliveries, why, json)
  local entry = redis.call('XRANGE', key, id, id)[1]
  local fields = entry and entry[2] or json and { 'event', json }
  redis.call('XACK', key, group, id)
  if not fields then return -1 end
  for _, it in ipairs({ 'stream_id', id, 'deliveries', deliveries, 'why', why }) do
    fields[#fields + 1] = it
  end
  local before = redis.call('XLEN', deadKey)
  redis.call('XADD', deadKey, 'MAXLEN', '~', maxLetters, '*', unpack(fields))
  return before + 1 - redis.call('XLEN', deadKey)
end
`;

/**
 * Takes own pending entries for a delivery, which Redis counts. ARGV: the key of the dead letters, their maximum number, the maximum of deliveries
 * of an entry, from how many deliveries on an entry is only taken alone, whether this call takes one alone (0 or 1), ids.
 *
 * @returns for each `[id, what, deliveries, fields]`; `what` is `taken`, `alone` (must be taken alone), `dead` (moved to the dead letters),
 *   `trimmed` or `lost`.
 */
export const TAKE: Script = {
  name: 'llmpTake',
  lua: `${HEAD}${MOVE_FUNCTION}
local deadKey, maxLetters, most, aloneFrom, isAlone = ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1'
local function take(id)
  local pending = owned(id)
  if not pending then return { id, 'lost' } end
  local deliveries = pending[4]
  if deliveries >= most then
    local evicted = moveToDeadLetters(deadKey, maxLetters, id, deliveries, 'never acknowledged')
    if evicted < 0 then return { id, 'trimmed' } end
    return { id, 'dead', deliveries, {}, evicted }
  end
  if deliveries >= aloneFrom and not isAlone then return { id, 'alone', deliveries } end
  local entry = redis.call('XCLAIM', key, group, me, 0, id)[1]
  if not entry then
    redis.call('XACK', key, group, id) -- Redis 7 has already dropped it.
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

/** Sets the idle time and the delivery count of own entries. ARGV: idle ms, then ID and count of each. @returns the entries that another consumer took over. */
export const RENEW_CLAIMS: Script = {
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

/** ARGV: the key of the dead letters, their maximum number, id, deliveries, why, the event. @returns how many older dead letters were evicted. */
export const MOVE_TO_DEAD_LETTERS: Script = {
  name: 'llmpSetAside',
  lua: `${HEAD}${MOVE_FUNCTION}
return moveToDeadLetters(ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9] ~= '' and ARGV[9])
`,
};

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

/** Removes consumers with nothing pending: this one, or all others that are idle. ARGV: the idle time in ms, or -1 for this one. @returns how many. */
export const DROP_CONSUMERS: Script = {
  name: 'llmpDropConsumers',
  lua: `${HEAD}
local idleMs, dropped = tonumber(ARGV[4]), 0
for _, it in ipairs(redis.call('XINFO', 'CONSUMERS', key, group)) do
  local fields = fieldsOf(it)
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
local OWN_FIELDS = 6 -- Names and values that moveToDeadLetters appended.
local letters = redis.call('XRANGE', ARGV[4], '-', ARGV[5], 'COUNT', ARGV[6])
for _, letter in ipairs(letters) do
  redis.call('XADD', key, '*', unpack(letter[2], 1, #letter[2] - OWN_FIELDS))
  redis.call('XDEL', ARGV[4], letter[1])
end
return #letters
`,
};
