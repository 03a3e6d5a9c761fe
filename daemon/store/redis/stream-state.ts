import type { RedisConnection, Script } from './connection.js';

/** Consumer group of all dispatchers. */
export const DISPATCHER_GROUP = 'llmp-dispatchers';

/** The event stream, as its dispatchers see it. */
export interface StreamState {
  /** Events that no dispatcher has read; null if it is unknown: there is no dispatcher, or Redis is older than version 7. */
  lag: number | null;
  /** Events that dispatchers have read and not acknowledged. */
  pending: number;
  /** Events that were trimmed before any dispatcher read them, since this was last corrected; null if it is unknown now. */
  trimmedUnread: number | null;
  /** Events ever added to the stream; null before Redis 7. */
  added: number | null;
}

/**
 * Measures the lag of the group. The numbers of Redis are wrong after unread entries were trimmed: it counts those as unread permanently. The
 * entries that were added, but neither read nor still present, were trimmed unread.
 *
 * ARGV: the key, the group, 1 to correct the count of the group. @returns [lag, pending, trimmed unread, added], each -1 if it is unknown.
 */
const MEASURE: Script = {
  name: 'llmpMeasure',
  lua: `
local key, group = ARGV[1], ARGV[2]
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
local listed = redis.pcall('XINFO', 'STREAM', key)
if listed.err then return { -1, 0, -1, 0 } end
local stream = fieldsOf(listed)
local its
for _, it in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  local fields = fieldsOf(it)
  if fields.name == group then its = fields end
end
local added, length = stream['entries-added'] or -1, stream.length
if not its then return { -1, 0, -1, added } end
local last, first = its['last-delivered-id'], stream['recorded-first-entry-id']
local read = its['entries-read'] or last == '0-0' and 0
if added < 0 or not read then return { -1, its.pending, -1, added } end
local unread = nil
if not isBefore(last, stream['last-generated-id']) then unread = 0
elseif length == 0 or isBefore(last, first) then unread = length end
if not unread then return { added - read, its.pending, -1, added } end
local trimmed = added - read - unread
if ARGV[3] == '1' and trimmed ~= 0 then
  redis.call('XGROUP', 'SETID', key, group, last, 'ENTRIESREAD', added - unread)
end
return { unread, its.pending, math.max(0, trimmed), added }
`,
};

/**
 * @param corrects whether trimmed events are told only this time: Redis then counts them as read.
 * @throws {RedisUnavailable} @throws {RedisErrorReply}
 */
export async function stateOfStream(
  connection: Pick<RedisConnection, 'run'>,
  key: string,
  corrects: boolean,
): Promise<StreamState> {
  const reply = await connection.run(MEASURE, [key, DISPATCHER_GROUP, corrects ? 1 : 0]);
  const [lag, pending, trimmedUnread, added] = reply as [number, number, number, number];
  return { lag: known(lag), pending, trimmedUnread: known(trimmedUnread), added: known(added) };
}

const known = (count: number): number | null => (count < 0 ? null : count);
