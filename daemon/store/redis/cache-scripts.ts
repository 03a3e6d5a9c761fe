/**
 * Lua scripts of the response cache in Redis. An entry is valid while its member is in the **index**, a sorted set in lexicographic
 * order, so that all responses of a resource, or of one project, are one range of it:
 *
 *     llmp:cache:index        RESOURCE:PROJECT:NAME:BYTES        llmp:cache:expiry       the same members, scored by expiry time
 *     llmp:cache:fills        RESOURCE:PROJECT:RANDOM:           llmp:cache:fill-expiry  the same members, scored by expiry time
 *     llmp:cache:entry:NAME   the encrypted response             llmp:cache:bytes        the sum of BYTES
 *     llmp:cache:run          run ID of the Redis server that the index was built in
 *
 * A `v` after BYTES marks a Vary marker (it names the header fields that select a response). Markers are not counted as responses.
 *
 * A write lease is a member next to the entries of its resource (in `fills`). What removes the entries also ends the lease,
 * whichever instance began it. Ages use Redis' own clock, through the TTL of an entry. The scripts do not declare their keys as
 * KEYS: that is fine for a single server, but would not work in Redis Cluster, which llmp does not support.
 *
 * If the index is evicted or flushed, all look-ups miss: entries without an index member are ignored and expire on their own.
 */
import type { Script } from './connection.js';
import { STALE_DIGITS } from './entry-cipher.js';

const LEASE_MS = 3_600_000; // No response takes longer. The lease of a crashed instance expires after this time.
const PAGE = 250; // Takes Redis about 1 ms.

const COMMON = `
local INDEX, EXPIRY, BYTES = 'llmp:cache:index', 'llmp:cache:expiry', 'llmp:cache:bytes'
local FILLS, FILL_EXPIRY, ENTRY = 'llmp:cache:fills', 'llmp:cache:fill-expiry', 'llmp:cache:entry:'

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function withPrefix(set, prefix)
  return redis.call('ZRANGEBYLEX', set, '[' .. prefix .. ':', '(' .. prefix .. ';')
end

local function bytesOf(member)
  return tonumber(member:match('(%d+)v?$'))
end

local function countResponses(members)
  local count = 0
  for _, member in ipairs(members) do
    if member:sub(-1) ~= 'v' then count = count + 1 end
  end
  return count
end

local function removeEntry(member)
  if redis.call('ZREM', INDEX, member) == 0 then return 0 end
  redis.call('ZREM', EXPIRY, member)
  redis.call('DECRBY', BYTES, bytesOf(member))
  redis.call('UNLINK', ENTRY .. member:match('([^:]+):%d+v?$'))
  return 1
end

local function endLease(fill)
  redis.call('ZREM', FILL_EXPIRY, fill)
  return redis.call('ZREM', FILLS, fill)
end

local function expired(set, most)
  return redis.call('ZRANGEBYSCORE', set, '-inf', now(), 'LIMIT', 0, most)
end

local function prune(most)
  local members = expired(EXPIRY, most)
  for _, member in ipairs(members) do
    if removeEntry(member) == 0 then redis.call('ZREM', EXPIRY, member) end
  end
  for _, fill in ipairs(expired(FILL_EXPIRY, most)) do endLease(fill) end
  return #members
end
`;

const script = (name: string, lua: string): Script => ({ name: `llmpCache${name}`, lua: COMMON + lua });

/**
 * Arguments: member, name, 1 to read, a write lease to begin or '', maximum bytes to send. Returns: payload or nil, ms until it
 * expires, 1 if the lease began.
 */
export const LOOK_UP = script(
  'LookUp',
  `
local prefix, name, reads, fill, most = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local payload, left, isFresh = false, 0, false
if reads == '1' then
  local member = withPrefix(INDEX, prefix)[1]
  -- Check the length first: another program may have stored a large value here.
  if member and bytesOf(member) <= tonumber(most) and redis.pcall('STRLEN', ENTRY .. name) == bytesOf(member) then
    payload = redis.pcall('GET', ENTRY .. name)
    left = redis.call('PTTL', ENTRY .. name)
    if type(payload) ~= 'string' or left < 0 then payload = false end
  end
  if payload then
    isFresh = left > (tonumber(payload:sub(1, ${STALE_DIGITS})) or left)
  elseif member then
    removeEntry(member)
  else
    redis.call('UNLINK', ENTRY .. name)
  end
end
if fill == '' or isFresh then return { payload, left, 0 } end
redis.call('ZADD', FILLS, 0, fill)
redis.call('ZADD', FILL_EXPIRY, now() + ${LEASE_MS}, fill)
for _, old in ipairs(expired(FILL_EXPIRY, 2)) do endLease(old) end
return { payload, left, 1 }
`,
);

/** Arguments: write lease, then for each entry: member, '' or v, ms to store it, payload. Returns: 1 if the entries were stored. */
export const STORE = script(
  'Keep',
  `
-- Changes nothing, but fails when memory is full. Redis checks memory only until the first write of a script.
redis.call('ZADD', FILLS, 'XX', 0, ARGV[1])
if endLease(ARGV[1]) == 0 then return 0 end
prune(20)
local there = redis.call('EXISTS', INDEX, EXPIRY, BYTES)
if there ~= 0 and there ~= 3 then redis.call('UNLINK', INDEX, EXPIRY, BYTES) end
for i = 2, #ARGV, 4 do
  local prefix, kind, keepMs, payload = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), ARGV[i + 3]
  for _, old in ipairs(withPrefix(INDEX, prefix)) do removeEntry(old) end
  local member = prefix .. ':' .. #payload .. kind
  redis.call('SET', ENTRY .. prefix:match('[^:]+$'), payload, 'PX', keepMs)
  redis.call('ZADD', INDEX, 0, member)
  redis.call('ZADD', EXPIRY, now() + keepMs, member)
  redis.call('INCRBY', BYTES, #payload)
  for _, key in ipairs({ INDEX, EXPIRY, BYTES }) do
    if redis.call('PTTL', key) < keepMs + 60000 then redis.call('PEXPIRE', key, keepMs + 60000) end
  end
end
return 1
`,
);

/**
 * Arguments: prefixes. Returns: how many responses were removed. For large ranges the payloads are left to expire, so that Redis is
 * not blocked.
 */
export const REMOVE: Script = {
  ...script(
    'Remove',
    `
local removed = 0
for _, prefix in ipairs(ARGV) do
  for _, fill in ipairs(withPrefix(FILLS, prefix)) do endLease(fill) end
  local members = withPrefix(INDEX, prefix)
  removed = removed + countResponses(members)
  if #members <= ${PAGE} then
    for _, member in ipairs(members) do removeEntry(member) end
  else
    local bytes = 0
    for _, member in ipairs(members) do bytes = bytes + bytesOf(member) end
    redis.call('ZREMRANGEBYLEX', INDEX, '[' .. prefix .. ':', '(' .. prefix .. ';')
    redis.call('DECRBY', BYTES, bytes)
  end
end
return removed
`,
  ),
  keepsOrder: true,
};

/**
 * Arguments: `index` or `fills`, project or '' for all, 1 to remove, the last member seen or ''. Returns: how many responses or
 * leases the page had, and its last member, or '' at the end.
 */
export const PAGE_THROUGH = script(
  'Page',
  `
local set, project, removes, last = 'llmp:cache:' .. ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local members = redis.call('ZRANGEBYLEX', set, last == '' and '-' or '(' .. last, '+', 'LIMIT', 0, ${PAGE})
local found = {}
for _, member in ipairs(members) do
  if project == '' or member:match('^[^:]+:([^:]+):') == project then
    found[#found + 1] = member
    if removes == '1' then
      if set == INDEX then removeEntry(member) else endLease(member) end
    end
  end
end
return { countResponses(found), #members == ${PAGE} and members[#members] or '' }
`,
);

/** Arguments: prefix. Returns: how many responses exist. */
export const COUNT = script('Count', `return countResponses(withPrefix(INDEX, ARGV[1]))`);

/** Returns: entries, bytes, and 1 while there are more expired entries to prune. */
export const SIZE = script(
  'Size',
  `
local isMore = prune(${PAGE}) == ${PAGE} and 1 or 0
return { redis.call('ZCARD', INDEX), tonumber(redis.call('GET', BYTES) or 0), isMore }
`,
);

/** Arguments: run ID or '', 1 to clear the index in any case. Returns: 1 if the index was cleared. */
export const PREPARE = script(
  'Arrive',
  `
local isSame = ARGV[1] ~= '' and redis.pcall('GET', 'llmp:cache:run') == ARGV[1]
redis.call('SET', 'llmp:cache:run', ARGV[1])
if isSame and ARGV[2] == '0' then return 0 end
redis.call('UNLINK', INDEX, EXPIRY, BYTES, FILLS, FILL_EXPIRY)
return 1
`,
);

/** Clears the index. Needed when another program has overwritten one of the keys. */
export const CLEAR: Script = {
  ...script('Forget', `return redis.call('UNLINK', INDEX, EXPIRY, BYTES, FILLS, FILL_EXPIRY)`),
  keepsOrder: true,
};
