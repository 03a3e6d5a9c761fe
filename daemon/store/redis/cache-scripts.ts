/**
 * The cache in Redis. An entry is valid as long as its member stands in the **index**, a sorted set in the order of its letters,
 * so that all answers of a resource, or of one project's, are one range of it:
 *
 *     llmp:cache:index        RESOURCE:PROJECT:NAME:BYTES        llmp:cache:expiry       the same members, by when they end
 *     llmp:cache:fills        RESOURCE:PROJECT:RANDOM:           llmp:cache:fill-expiry  the same
 *     llmp:cache:entry:NAME   the answer, sealed                 llmp:cache:bytes        the sum of BYTES
 *     llmp:cache:run          the run id of the Redis that the index was made in
 *
 * Behind BYTES stands a v where there is no answer but a sign to where answers stand: it is not counted as one.
 *
 * A fill is a member beside the entries of its resource, and what removes those ends it, on whatever instance it began. Ages go by
 * Redis' own clock, through the time to live of an entry. That the key names are not declared as KEYS is fine for one server; in a
 * cluster, which we do not know, it would not be.
 *
 * An index that was evicted or flushed means misses: entries without it are nothing, and end by themselves.
 */
import type { Script } from './connection.js';
import { STALE_DIGITS } from './sealed-entry.js';

const FILL_MS = 3_600_000; // No answer takes longer; a fill whose instance died is forgotten then.
const PAGE = 250; // About a ms of Redis' time.

const COMMON = `
local INDEX, EXPIRY, BYTES = 'llmp:cache:index', 'llmp:cache:expiry', 'llmp:cache:bytes'
local FILLS, FILL_EXPIRY, ENTRY = 'llmp:cache:fills', 'llmp:cache:fill-expiry', 'llmp:cache:entry:'

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function below(set, prefix)
  return redis.call('ZRANGEBYLEX', set, '[' .. prefix .. ':', '(' .. prefix .. ';')
end

local function bytesOf(member)
  return tonumber(member:match('(%d+)v?$'))
end

local function answersAmong(members)
  local count = 0
  for _, member in ipairs(members) do
    if member:sub(-1) ~= 'v' then count = count + 1 end
  end
  return count
end

local function forget(member)
  if redis.call('ZREM', INDEX, member) == 0 then return 0 end
  redis.call('ZREM', EXPIRY, member)
  redis.call('DECRBY', BYTES, bytesOf(member))
  redis.call('UNLINK', ENTRY .. member:match('([^:]+):%d+v?$'))
  return 1
end

local function endFill(fill)
  redis.call('ZREM', FILL_EXPIRY, fill)
  return redis.call('ZREM', FILLS, fill)
end

local function expired(set, most)
  return redis.call('ZRANGEBYSCORE', set, '-inf', now(), 'LIMIT', 0, most)
end

local function prune(most)
  local members = expired(EXPIRY, most)
  for _, member in ipairs(members) do
    if forget(member) == 0 then redis.call('ZREM', EXPIRY, member) end
  end
  for _, fill in ipairs(expired(FILL_EXPIRY, most)) do endFill(fill) end
  return #members
end
`;

const script = (name: string, lua: string): Script => ({ name: `llmpCache${name}`, lua: COMMON + lua });

/** member, name, whether to read, a fill to begin or '', the most bytes to send → payload or nil, ms to its end, whether the fill began */
export const LOOK_UP = script(
  'LookUp',
  `
local prefix, name, reads, fill, most = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local payload, left, isFresh = false, 0, false
if reads == '1' then
  local member = below(INDEX, prefix)[1]
  -- Asked for its length first: what somebody else has put there may be large.
  if member and bytesOf(member) <= tonumber(most) and redis.pcall('STRLEN', ENTRY .. name) == bytesOf(member) then
    payload = redis.pcall('GET', ENTRY .. name)
    left = redis.call('PTTL', ENTRY .. name)
    if type(payload) ~= 'string' or left < 0 then payload = false end
  end
  if payload then
    isFresh = left > (tonumber(payload:sub(1, ${STALE_DIGITS})) or left)
  elseif member then
    forget(member)
  else
    redis.call('UNLINK', ENTRY .. name)
  end
end
if fill == '' or isFresh then return { payload, left, 0 } end
redis.call('ZADD', FILLS, 0, fill)
redis.call('ZADD', FILL_EXPIRY, now() + ${FILL_MS}, fill)
for _, old in ipairs(expired(FILL_EXPIRY, 2)) do endFill(old) end
return { payload, left, 1 }
`,
);

/** fill, and in turn: member, '' or v, ms to keep, payload → 1 if they were kept */
export const KEEP = script(
  'Keep',
  `
-- Changes nothing. What needs memory must come first: behind a write, Redis would let this script go on without any.
redis.call('ZADD', FILLS, 'XX', 0, ARGV[1])
if endFill(ARGV[1]) == 0 then return 0 end
prune(20)
local there = redis.call('EXISTS', INDEX, EXPIRY, BYTES)
if there ~= 0 and there ~= 3 then redis.call('UNLINK', INDEX, EXPIRY, BYTES) end
for i = 2, #ARGV, 4 do
  local prefix, kind, keepMs, payload = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), ARGV[i + 3]
  for _, old in ipairs(below(INDEX, prefix)) do forget(old) end
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

/** prefixes → how many answers were removed. Of very many the payloads are left to end by themselves, so that Redis is not held up. */
export const REMOVE: Script = {
  ...script(
    'Remove',
    `
local removed = 0
for _, prefix in ipairs(ARGV) do
  for _, fill in ipairs(below(FILLS, prefix)) do endFill(fill) end
  local members = below(INDEX, prefix)
  removed = removed + answersAmong(members)
  if #members <= ${PAGE} then
    for _, member in ipairs(members) do forget(member) end
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

/** index or fills, project or '' for all, 1 to remove, the last member seen or '' → how many answers or fills it was, the last member or '' at the end */
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
      if set == INDEX then forget(member) else endFill(member) end
    end
  end
end
return { answersAmong(found), #members == ${PAGE} and members[#members] or '' }
`,
);

/** prefix → how many answers there are */
export const COUNT = script('Count', `return answersAmong(below(INDEX, ARGV[1]))`);

/** → entries, bytes, and 1 while there is more to prune */
export const SIZE = script(
  'Size',
  `
local isMore = prune(${PAGE}) == ${PAGE} and 1 or 0
return { redis.call('ZCARD', INDEX), tonumber(redis.call('GET', BYTES) or 0), isMore }
`,
);

/** run id or '', 1 to forget whatever it is → 1 if the index was forgotten */
export const ARRIVE = script(
  'Arrive',
  `
local isSame = ARGV[1] ~= '' and redis.pcall('GET', 'llmp:cache:run') == ARGV[1]
redis.call('SET', 'llmp:cache:run', ARGV[1])
if isSame and ARGV[2] == '0' then return 0 end
redis.call('UNLINK', INDEX, EXPIRY, BYTES, FILLS, FILL_EXPIRY)
return 1
`,
);

/** Forgets everything: a key of ours is somebody else's. */
export const FORGET: Script = {
  ...script('Forget', `return redis.call('UNLINK', INDEX, EXPIRY, BYTES, FILLS, FILL_EXPIRY)`),
  keepsOrder: true,
};
