/**
 * What the dispatcher does to the stream in one piece. Redis' own delivery count is the one that matters: it is raised when an
 * event is taken for a delivery, so that one which kills whoever delivers it gives itself away, and lowered again when the back
 * end was away, for which no event is to blame.
 *
 * ARGV of each: the stream's key, the group, this consumer; then its own.
 */
import type { Script } from '../store/redis/connection.js';

export const HEAD = `
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
