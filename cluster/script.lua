-- One trip of one process: gives back, takes for all its callers or for none, pauses, in this order.
--
-- KEYS[1] is the limit, one string: tat:rem:pause:far:terms. The debt is paid off at tat µs + rem/den µs: a bucket at
-- rest has none, an empty one owes its burst, and every unit costs 1/rate. Nothing goes before pause, and nobody has
-- been let to owe more than far µs. terms is n/d/burst: n units in d ns.
--
-- ARGV: 1 terms, 2 den, 3 far; 4-5 what to take, in µs and rem; taken only if 6-7 the debt, in µs and rem from now, and
-- 8 the pause, in µs from now, are no longer than this. Where there is more: 9 pause for so many µs; -1 is a probe,
-- which takes nothing and writes all the same: a replica, or a full server, can only read; 10 the tat:rem for which 11-12
-- is given back. All numbers stay below 2^53, where a double is exact, and are written by %d: tostring has 14 digits.
local tonumber, format, max = tonumber, string.format, math.max
local far, cost, hold = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[9] or 0)

local clock = redis.call('TIME') -- once: within a script it stands still in some versions and moves in others
local now = clock[1] * 1000000 + clock[2]
local tat, rem, pause, debtor, given = 0, 0, 0, far, false

local state = redis.call('GET', KEYS[1])
if state then
  local a, b, c, f, terms = string.match(state, '^(%d+):(%d+):(%d+):(%d+):(%d+/%d+/%d+)$')
  if not a then return redis.error_reply('SLUICE the key ' .. KEYS[1] .. ' holds something else') end
  tat, rem, pause, debtor = tonumber(a), tonumber(b), tonumber(c), max(far, tonumber(f))
  local at = max(now, pause)
  -- Only the clock's going back leaves more debt than anybody was let to make.
  if tat - at > debtor then tat, rem = at + far, 0 end
  if terms ~= ARGV[1] then
    -- The rate or the burst is another: the units that are left stay, up to the new burst, and so does the line, less than
    -- none. None is made by that, however often calls under one set of terms follow those under another. Rounded up.
    local n, d, burst = string.match(terms, '(%d+)/(%d+)/(%d+)')
    local newN, newD, newBurst = string.match(ARGV[1], '(%d+)/(%d+)/(%d+)')
    local owed = 0
    if d ~= '0' then owed = max(tat + (rem > 0 and 1 or 0) - at, 0) * 1000 * n / d end
    local left = math.min(burst - owed, tonumber(newBurst))
    tat, rem = at + math.ceil((newBurst - left) * newD / newN / 1000), 0
    debtor = max(far, tat - at)
  elseif ARGV[10] and a .. ':' .. b == ARGV[10] then
    given, tat, rem = true, tat - ARGV[11], rem - ARGV[12]
    if rem < 0 then tat, rem = tat - 1, rem + ARGV[2] end
  end
end

local at = max(now, pause) -- what comes during a pause stands as if it came at its end
if tat < at then tat, rem, debtor = at, 0, far end

local debt, part = tat - now, rem
local most = tonumber(ARGV[6])
local taken = at - now <= tonumber(ARGV[8]) and (debt < most or debt == most and rem <= tonumber(ARGV[7]))
if taken then
  tat, rem = tat + cost, rem + ARGV[5]
  if rem >= tonumber(ARGV[2]) then tat, rem = tat + 1, rem - ARGV[2] end
end
if hold > 0 then pause = max(pause, now + hold) end

if given or hold ~= 0 or taken and (cost > 0 or ARGV[5] ~= '0') then
  -- The key must outlive the debt: a second more, and rounded up.
  local ttl = math.ceil((max(tat + 1, pause) - now) / 1000) + 1000
  local value = format('%d:%d:%d:%d:%s', tat, rem, pause, max(debtor, tat - at), ARGV[1])
  redis.call('SET', KEYS[1], value, 'PX', ttl)
end
return {(taken and 1 or 0) + (given and 2 or 0), now, debt, part, at - now}
