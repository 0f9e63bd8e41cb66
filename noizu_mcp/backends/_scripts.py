"""The Lua scripts of the Redis backend. Each is one atomic operation.

Times are microseconds of Redis' own clock; Redis stops it while a script runs. Numbers stay below
2^53, so that Lua's doubles hold them. Replies have a bound. Keys are met as anyone may have written
them: a value of another type counts as absent, and is replaced where the script writes.

A record is a hash: `v` its version, `d` its value, `g` a JSON list of its groups. A group is a
sorted set of keys by the time of their expiry in milliseconds. A rate limit is the time at which
its bucket is empty.

A stream has entries with the ids `<birth>-<n>`: the time at which its first entry was appended, and
a number that counts from 1. A reader sees by the next id whether entries are missing, also after
the stream has expired, or all keys were deleted, and it began anew.
"""

from hashlib import sha1
from typing import Final

from ._interface import MAX_ENTRIES, MAX_ENTRY, MAX_MEMBERS, MAX_VALUE

#: Maximum size of the entries in one reply, in bytes.
MAX_READ: Final = 8 * 2**20

_CLOCK = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)
local function whole(number) return string.format('%.0f', number) end
"""

_GROUPS = """
local function groups_of(text)
  local ok, names = pcall(cjson.decode, text or '')
  if not ok or type(names) ~= 'table' then return {} end
  return names
end
local function join(group, key, ttl)
  local name = ARGV[1] .. tostring(group)
  local added = redis.pcall('ZADD', name, now_ms + ttl, key)
  if type(added) == 'table' and added.err then
    if added.err:find('WRONGTYPE') then redis.call('DEL', name) end
    redis.call('ZADD', name, now_ms + ttl, key)
  end
  if redis.call('PTTL', name) < ttl then redis.call('PEXPIRE', name, ttl) end
end
"""


class Script:
    """A script with the digest by which Redis knows it."""

    def __init__(self, *parts: str) -> None:
        self.text = "".join(parts).encode()
        # Redis names scripts by SHA-1.
        self.digest = sha1(self.text, usedforsecurity=False).hexdigest().encode()


#: Records; root of groups, then for each record its name, TTL in ms or "", and known version. The
#: reply ends before the first value for which it has no room; it has room for one.
GET: Final = Script(
    _CLOCK,
    _GROUPS,
    f"""
local room, replies = {MAX_READ}, {{}}
for i, record in ipairs(KEYS) do
  local name, ttl, known = ARGV[3 * i - 1], tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
  local found = redis.pcall('HMGET', record, 'v', 'd', 'g')
  local version, value = not found.err and tonumber(found[1] or ''), found[2]
  if not version or not value or #value > {MAX_VALUE} then
    replies[i] = false
  else
    if version == known then value = '' end
    room = room - #value
    if room < 0 and i > 1 then break end
    if ttl then
      redis.call('PEXPIRE', record, ttl)
      for _, group in ipairs(groups_of(found[3])) do join(group, name, ttl) end
    else
      ttl = redis.call('PTTL', record)
    end
    replies[i] = {{version, now + ttl * 1000, value}}
  end
end
return replies
""",
)

#: Record; root of groups, name of the record, value, TTL in ms, expected version or "", then each
#: group with its maximum. The reply is {1, version}, {0, present version} or {-1, number of group}.
PUT: Final = Script(
    _CLOCK,
    _GROUPS,
    """
local found = redis.pcall('HMGET', KEYS[1], 'v', 'g')
local present = not found.err and tonumber(found[1] or '') or 0
local expected, ttl = tonumber(ARGV[5]), tonumber(ARGV[4])
if expected and expected ~= present then return {0, present} end
local groups, joined = {}, {}
if present ~= 0 then
  for _, group in ipairs(groups_of(found[2])) do
    groups[#groups + 1], joined[group] = group, true
  end
end
for i = 6, #ARGV, 2 do
  if not joined[ARGV[i]] then
    local name = ARGV[1] .. ARGV[i]
    local dropped = redis.pcall('ZREMRANGEBYSCORE', name, '-inf', now_ms)
    if type(dropped) == 'table' and dropped.err then redis.call('DEL', name) end
    if redis.call('ZCARD', name) >= tonumber(ARGV[i + 1]) then return {-1, (i - 6) / 2} end
    groups[#groups + 1], joined[ARGV[i]] = ARGV[i], true
  end
end
if found.err then redis.call('DEL', KEYS[1]) end
local version = math.max(now, present + 1)
redis.call('HSET', KEYS[1], 'v', whole(version), 'd', ARGV[3], 'g', cjson.encode(groups))
redis.call('PEXPIRE', KEYS[1], ttl)
for _, group in ipairs(groups) do join(group, ARGV[2], ttl) end
return {1, version}
""",
)

#: Record; root of groups, name of the record, expected version or "".
DELETE: Final = Script(
    _CLOCK,
    _GROUPS,
    """
local found = redis.pcall('HMGET', KEYS[1], 'v', 'g')
local present = not found.err and tonumber(found[1] or '')
local expected = tonumber(ARGV[3])
if not present or (expected and expected ~= present) then return 0 end
redis.call('DEL', KEYS[1])
for _, group in ipairs(groups_of(found[2])) do
  redis.call('ZREM', ARGV[1] .. tostring(group), ARGV[2])
end
return 1
""",
)

#: Group.
MEMBERS: Final = Script(
    _CLOCK,
    f"""
local found = redis.pcall('ZRANGEBYSCORE', KEYS[1], now_ms + 1, '+inf', 'LIMIT', 0, {MAX_MEMBERS})
if found.err then return {{}} end
return found
""",
)

#: Limit; microseconds from one use to the next, microseconds of the period. A thousandth of the
#: interval makes up for rounding.
TAKE: Final = Script(
    _CLOCK,
    """
local interval, period = tonumber(ARGV[1]), tonumber(ARGV[2])
local found = redis.pcall('GET', KEYS[1])
local arrival = type(found) == 'string' and tonumber(found) or now
if not (arrival > now) then arrival = now end
arrival = math.min(arrival, now + period) + interval
local wait = arrival - period - now
if wait > interval / 1000 then return math.ceil(wait) end
local ms = whole(math.ceil((arrival - now) / 1000))
redis.call('SET', KEYS[1], string.format('%.3f', arrival), 'PX', ms)
return 0
""",
)

#: Stream; entry, entries to keep, TTL in ms.
APPEND: Final = Script(
    _CLOCK,
    """
local newest = redis.pcall('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local birth, number
if not newest.err and newest[1] then birth, number = newest[1][1]:match('^(%d+)-(%d+)$') end
local id = birth and birth .. '-' .. whole(number + 1) or whole(now) .. '-1'
local added = redis.pcall('XADD', KEYS[1], 'MAXLEN', ARGV[2], id, 'd', ARGV[1])
if type(added) == 'table' and added.err then
  -- Not this backend's stream; other errors, such as a full memory, are the caller's.
  if not (added.err:find('WRONGTYPE') or added.err:find(' ID ')) then return added end
  redis.call('DEL', KEYS[1])
  id = whole(now) .. '-1'
  redis.call('XADD', KEYS[1], id, 'd', ARGV[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return id
""",
)

#: Stream. Where it is not there, it begins with an entry 0 that readers skip.
END: Final = Script(
    _CLOCK,
    """
local newest = redis.pcall('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
if not newest.err and newest[1] then return newest[1][1] end
redis.call('DEL', KEYS[1])
redis.call('XADD', KEYS[1], whole(now) .. '-0', 'x', '')
redis.call('PEXPIRE', KEYS[1], 3600000)
return whole(now) .. '-0'
""",
)

#: Streams; the id of a position in each, or "" for the end. The reply has for each its newest id
#: and the entries after the position, as ids and bytes in turn.
READ: Final = Script(
    f"""
local room, replies = {MAX_READ}, {{}}
for i, key in ipairs(KEYS) do
  local newest = redis.pcall('XREVRANGE', key, '+', '-', 'COUNT', 1)
  local reply = {{'', {{}}}}
  -- `XREAD` would fail.
  if newest.err then redis.call('DEL', key) end
  if not newest.err and newest[1] then
    reply[1] = newest[1][1]
    local from = ARGV[i] == '' and reply[1] or ARGV[i]
    local entries = redis.pcall('XRANGE', key, '(' .. from, '+', 'COUNT', {MAX_ENTRIES})
    for _, entry in ipairs(entries.err and {{}} or entries) do
      local data = entry[2][1] == 'd' and entry[2][2] or ''
      if #data > {MAX_ENTRY} then data = '' end
      room = room - #data
      if room < 0 then break end
      table.insert(reply[2], entry[1])
      table.insert(reply[2], data)
    end
  end
  replies[i] = reply
end
return replies
"""
)

#: Epoch; the epoch to write where it is missing. The reply has the epoch and the time.
BEAT: Final = Script(
    _CLOCK,
    """
local epoch = redis.pcall('GET', KEYS[1])
if type(epoch) ~= 'string' or #epoch > 64 then
  epoch = ARGV[1]
  redis.call('SET', KEYS[1], epoch)
end
return {epoch, whole(now)}
""",
)
