import type { Script } from './connection.js';

/**
 * Adds events in their order: key, length, events. What cannot be added ends it: with the error if it was the first, otherwise with
 * how many there are before it.
 */
export const ADD: Script = {
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
 * How the stream is, and how far a group has read it: key, group. What is not there, or what this Redis does not tell (before 7),
 * is empty.
 *
 * @returns its length, how many were ever added, its last place; how many the group has read, its lag, and its last place.
 */
export const LOOK: Script = {
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
