/**
 * Lua scripts for the limits of tokens and projects in Redis.
 *
 *     llmp:limits:begun      run ID of the server, and since when it has been counting without a gap
 *     llmp:limits:leases     the holders of slots, scored by the end of their lease
 *     llmp:limits:slots:ID   how many slots of a token or project each holder has
 *     llmp:limits:of:ID      what it used: seconds with their requests and tokens, and the debt of tokens (core/limit-windows.ts)
 *     llmp:limits:expiry     the last two, scored by the time from which they are not needed
 *
 * A holder is an instance, from one connection to the next. It renews its lease for all of its slots together. Slots of a lease that has ended
 * are free. What was admitted before `begun` is not known: until it is over, the window counts as full, except for what is newer.
 *
 * No key has an expiry of its own: Redis could evict it when the memory is full of cached responses.
 *
 * Times are those of Redis, in ms. The scripts do not declare their keys: see cache-scripts.ts.
 */
import { IN_WINDOW_MS } from '../../core/limit-windows.js';
import type { Script } from './connection.js';

export const LEASE_MS = 10_000;
/** Longer than any holder reports all of its slots again. */
const SLOTS_EXPIRE_MS = 3_600_000;
/** More than a start of instances adds in a second. */
const REMOVED_PER_RENEWAL = 250;
/** Clocks of instances may differ by so much from each other. */
const CLOCK_ERROR_MS = 5_000;

const COMMON = `
local PREFIX, WINDOW = 'llmp:limits:', ${IN_WINDOW_MS}
local BEGUN, LEASES, EXPIRY = PREFIX .. 'begun', PREFIX .. 'leases', PREFIX .. 'expiry'

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local nowMs = now()
local second = math.floor(nowMs / 1000)

local function typeOf(key)
  return redis.call('TYPE', key).ok
end

local function runOfBegun()
  return typeOf(BEGUN) == 'hash' and redis.call('HGET', BEGUN, 'run') or ''
end

local function begin(run)
  redis.call('UNLINK', BEGUN)
  redis.call('HSET', BEGUN, 'run', run, 'at', nowMs)
  if typeOf(LEASES) ~= 'zset' then redis.call('UNLINK', LEASES) end
  redis.call('ZADD', LEASES, '+inf', '') -- So that the key is there even if nobody has a lease.
  return nowMs
end

-- Someone else may have removed anything, or set the clock back.
local function begunAt()
  local at = typeOf(BEGUN) == 'hash' and tonumber(redis.call('HGET', BEGUN, 'at'))
  if at and at <= nowMs and typeOf(LEASES) == 'zset' then return at end
  return begin(runOfBegun())
end

local function isLeased(holder)
  return (tonumber(redis.call('ZSCORE', LEASES, holder) or 0) or 0) > nowMs
end

local function fullFor(begun, ageMs)
  if nowMs - ageMs >= begun + ${CLOCK_ERROR_MS} then return 0 end
  return math.max(0, begun + WINDOW - nowMs)
end

local function expireAt(member, atMs)
  if typeOf(EXPIRY) ~= 'zset' then redis.call('UNLINK', EXPIRY) end
  redis.call('ZADD', EXPIRY, atMs, member)
end

local function removeExpired()
  if typeOf(EXPIRY) ~= 'zset' then return end
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', nowMs, 'LIMIT', 0, ${REMOVED_PER_RENEWAL})) do
    redis.call('UNLINK', PREFIX .. member)
    redis.call('ZREM', EXPIRY, member)
  end
end

local function setSlots(id, holder, count)
  local key = PREFIX .. 'slots:' .. id
  if typeOf(key) ~= 'hash' then redis.call('UNLINK', key) end
  if count > 0 then
    redis.call('HSET', key, holder, count)
    expireAt('slots:' .. id, nowMs + ${SLOTS_EXPIRE_MS})
  else
    redis.call('HDEL', key, holder)
  end
end

local function addSlots(id, holder, by)
  local key = PREFIX .. 'slots:' .. id
  local count = typeOf(key) == 'hash' and tonumber(redis.call('HGET', key, holder) or 0) or 0
  setSlots(id, holder, count + by)
end

local function slotsOf(id, graceMs)
  local key = PREFIX .. 'slots:' .. id
  local sum = 0
  if typeOf(key) ~= 'hash' then return sum end
  local found = redis.call('HGETALL', key)
  for i = 1, #found, 2 do
    local untilMs = tonumber(redis.call('ZSCORE', LEASES, found[i]) or 0) or 0
    if untilMs + graceMs > nowMs then sum = sum + (tonumber(found[i + 1]) or 0) else redis.call('HDEL', key, found[i]) end
  end
  return sum
end

local function write(id, used, limit)
  local expiresMs = WINDOW + 1000
  if used[2] > 0 and limit > 0 then expiresMs = expiresMs + math.ceil(used[2] * 60000 / limit) end
  redis.call('SET', PREFIX .. 'of:' .. id, cmsgpack.pack(used))
  expireAt('of:' .. id, nowMs + expiresMs)
end

-- { full until, debt, when it was that, { second, requests, tokens }, ... }
local function read(id)
  local raw = redis.pcall('GET', PREFIX .. 'of:' .. id)
  if raw == false then return { 0, 0, nowMs } end
  local isRead, used = false, nil
  if type(raw) == 'string' then isRead, used = pcall(cmsgpack.unpack, raw) end
  local isValid = isRead and type(used) == 'table' and #used >= 3
  for i, part in ipairs(isValid and used or {}) do isValid = isValid and type(part) == (i <= 3 and 'number' or 'table') end
  -- Not ours, or from a clock that was set back.
  if not isValid or used[3] > nowMs + WINDOW then
    used = { nowMs + WINDOW, isValid and used[2] or 0, nowMs }
    write(id, used, 0)
    return used
  end
  local recent = { used[1], used[2], used[3] }
  for i = 4, #used do
    if used[i][1] > second - WINDOW / 1000 then recent[#recent + 1] = used[i] end
  end
  return recent
end

local function drain(used, limit)
  used[2] = math.max(0, used[2] - math.max(0, nowMs - used[3]) * limit / 60000)
  used[3] = math.max(used[3], nowMs)
end

local function sumOf(used, field)
  local sum = 0
  for i = 4, #used do sum = sum + used[i][field] end
  return sum
end

local function untilAtMost(used, field, most)
  local sum = sumOf(used, field)
  if sum <= most then return 0 end
  for i = 4, #used do
    sum = sum - used[i][field]
    if sum <= most then return used[i][1] * 1000 + WINDOW - nowMs end
  end
  return WINDOW
end

-- The amounts of a second, which gets its place in the order.
local function amountsOf(used, at)
  local place = #used + 1
  while place > 4 and used[place - 1][1] >= at do place = place - 1 end
  if not used[place] or used[place][1] ~= at then table.insert(used, place, { at, 0, 0 }) end
  return used[place]
end
`;

const script = (name: string, lua: string): Script => ({ name: `llmpLimits${name}`, lua: COMMON + lua });

/**
 * All three limits of all scopes, all or nothing.
 *
 * Arguments: holder, ms for which ended leases count, ms for which all windows are full, 1 to take a slot, 1 to count a request, tokens; and
 * for each scope its ID, its age in ms, and the limits of concurrent requests, requests and tokens, or ''. Returns: 1, the second, and the
 * tokens charged to each scope; 0, the number of the scope, that of its limit, and ms until it may be granted; or 2 if the lease has ended.
 */
export const ENTER = script(
  'Enter',
  `
local holder, graceMs, fullMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local takesSlot, isRequest, tokens = ARGV[4] == '1', ARGV[5] == '1', tonumber(ARGV[6])
local begun = begunAt()
if not isLeased(holder) then return { 2 } end
local scopes = {}
for i = 7, #ARGV, 5 do
  local id = ARGV[i]
  local used = read(id)
  scopes[#scopes + 1] = {
    id = id, used = used, fullMs = math.max(fullMs, used[1] - nowMs, fullFor(begun, tonumber(ARGV[i + 1]))),
    concurrent = tonumber(ARGV[i + 2]), requests = tonumber(ARGV[i + 3]), tokens = tonumber(ARGV[i + 4]),
  }
end
for n, scope in ipairs(scopes) do
  if takesSlot and scope.concurrent and (scope.fullMs > 0 or slotsOf(scope.id, graceMs) >= scope.concurrent) then
    return { 0, n, 1, 0 }
  end
end
for n, scope in ipairs(scopes) do
  if isRequest and scope.requests then
    local waitMs = math.max(scope.fullMs, untilAtMost(scope.used, 2, scope.requests - 1))
    if waitMs > 0 then return { 0, n, 2, math.ceil(waitMs) } end
  end
  if tokens > 0 and scope.tokens then
    drain(scope.used, scope.tokens)
    local room = scope.tokens - math.min(tokens, scope.tokens)
    local waitMs = math.max(scope.fullMs, (scope.used[2] - room) * 60000 / scope.tokens, untilAtMost(scope.used, 3, room))
    if waitMs > 0 then return { 0, n, 3, math.ceil(waitMs) } end
  end
end
local result = { 1, second }
for _, scope in ipairs(scopes) do
  local charged = scope.tokens and math.min(tokens, scope.tokens) or 0
  if takesSlot then addSlots(scope.id, holder, 1) end
  if (isRequest and scope.requests) or charged > 0 then
    local amounts = amountsOf(scope.used, math.max(second, #scope.used > 3 and scope.used[#scope.used][1] or 0))
    if isRequest and scope.requests then amounts[2] = amounts[2] + 1 end
    amounts[3] = amounts[3] + charged
    scope.used[2] = scope.used[2] + charged
    write(scope.id, scope.used, scope.tokens or 0)
    result[2] = amounts[1]
  end
  result[#result + 1] = charged
end
return result
`,
);

/**
 * Arguments: the holder that returns a slot or '', the second that is corrected or '' for this one, requests to undo; and for each scope
 * its ID, the tokens to add, and the limit of tokens, or 0.
 */
export const CORRECT = script(
  'Correct',
  `
local holder, at, requests = ARGV[1], tonumber(ARGV[2]) or second, tonumber(ARGV[3])
for i = 4, #ARGV, 3 do
  local id, by, limit = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  if holder ~= '' then addSlots(id, holder, -1) end
  if by ~= 0 or requests > 0 then
    local used = read(id)
    drain(used, limit)
    used[2] = math.max(0, used[2] + by)
    if at > second - WINDOW / 1000 then
      local amounts = amountsOf(used, at)
      amounts[2] = math.max(0, amounts[2] - requests)
      amounts[3] = math.max(0, amounts[3] + by)
    end
    write(id, used, limit)
  end
end
return 1
`,
);

/**
 * Renews a lease, and sets the slots of its holder. Arguments: holder, 1 if it is a new one, an earlier one whose lease ends or '', and for
 * each scope its ID and the number of slots. Returns: 1, or 0 if its lease has ended; and ms for which windows count as full.
 */
export const RENEW = script(
  'Renew',
  `
local holder, isNew, former = ARGV[1], ARGV[2] == '1', ARGV[3]
local begun = begunAt()
-- Others may have removed its slots.
if not isNew and not isLeased(holder) then return { 0, 0 } end
redis.call('ZADD', LEASES, nowMs + ${LEASE_MS}, holder)
for i = 4, #ARGV, 2 do setSlots(ARGV[i], holder, tonumber(ARGV[i + 1])) end
if former ~= '' then redis.call('ZREM', LEASES, former) end
redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', nowMs - ${SLOTS_EXPIRE_MS})
removeExpired()
return { 1, math.max(0, begun + WINDOW - nowMs) }
`,
);

/**
 * Arguments: run ID or '', and 1 if something was admitted that is not counted here. Then, or on another server, the window counts as full.
 */
export const JOIN = script(
  'Join',
  `
if ARGV[1] == '' or runOfBegun() ~= ARGV[1] or ARGV[2] == '1' then begin(ARGV[1]) end
return 1
`,
);

/** Arguments: a holder that ends. */
export const QUIT = script('Quit', `return typeOf(LEASES) == 'zset' and redis.call('ZREM', LEASES, ARGV[1]) or 0`);

/**
 * Arguments: ms for which ended leases count; and for each scope its ID, its age, and its limit of tokens or 0. Returns for each: ms for which
 * it is full, slots, requests and tokens.
 */
export const USED = script(
  'Used',
  `
local begun = begunAt()
local result = {}
for i = 2, #ARGV, 3 do
  local used = read(ARGV[i])
  drain(used, tonumber(ARGV[i + 2]))
  result[#result + 1] = math.max(0, used[1] - nowMs, fullFor(begun, tonumber(ARGV[i + 1])))
  result[#result + 1] = slotsOf(ARGV[i], tonumber(ARGV[1]))
  result[#result + 1] = sumOf(used, 2)
  result[#result + 1] = math.ceil(math.max(used[2], sumOf(used, 3)))
end
return result
`,
);
