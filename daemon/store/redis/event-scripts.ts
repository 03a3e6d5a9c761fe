import type { Script } from './connection.js';

/**
 * Adds events in order. Arguments: key, maximum stream length, events. Stops at the first event that cannot be added: returns the
 * error if it is the first event, otherwise the number of events added before it.
 */
export const ADD_EVENTS: Script = {
  name: 'llmpAddEvents',
  lua: `
local key, length = ARGV[1], ARGV[2]
for i = 3, #ARGV do
  local reply = redis.pcall('XADD', key, 'MAXLEN', '~', length, '*', 'event', ARGV[i])
  if type(reply) == 'table' and reply.err then
    if i == 3 then return reply end
    return i - 3
  end
end
return #ARGV - 2
`,
};

/**
 * Reads the state of the stream and of a consumer group. Arguments: key, group. A value is empty if it does not exist or this Redis
 * does not report it (before version 7).
 *
 * @returns stream length, events ever added, last generated ID; events read by the group, its lag, its last delivered ID.
 */
export const INSPECT_STREAM: Script = {
  name: 'llmpLookAtEvents',
  lua: `
local function field(list, name)
  if type(list) ~= 'table' or list.err then return '' end
  for i = 1, #list, 2 do
    if list[i] == name then return list[i + 1] and tostring(list[i + 1]) or '' end
  end
  return ''
end
local stream = redis.pcall('XINFO', 'STREAM', ARGV[1])
local read, lag, delivered = '', '', ''
local groups = redis.pcall('XINFO', 'GROUPS', ARGV[1])
if type(groups) == 'table' and not groups.err then
  for _, group in ipairs(groups) do
    if field(group, 'name') == ARGV[2] then
      read, lag, delivered = field(group, 'entries-read'), field(group, 'lag'), field(group, 'last-delivered-id')
    end
  end
end
local length, added = field(stream, 'length'), field(stream, 'entries-added')
return { length, added, field(stream, 'last-generated-id'), read, lag, delivered }
`,
};
