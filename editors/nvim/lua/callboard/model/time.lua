-- Times of the wire. Pure.
local M = {}

---@param at string? RFC 3339, UTC
---@return integer? ms since the epoch; nil for what is no time
function M.ms(at)
  local y, mo, d, h, mi, s, rest = (at or ''):match(
    '^(%d%d%d%d)-(%d%d)-(%d%d)T(%d%d):(%d%d):(%d%d)(%.?%d*)Z$'
  )
  if not y then
    return nil
  end
  y, mo, d = tonumber(y), tonumber(mo), tonumber(d)
  -- Days since the epoch, with the year beginning in March so that the leap day is its last.
  local year = mo <= 2 and y - 1 or y
  local era = math.floor(year / 400)
  local of_era = year - era * 400
  local of_year = math.floor((153 * (mo + (mo > 2 and -3 or 9)) + 2) / 5) + d - 1
  local days = era * 146097
    + of_era * 365
    + math.floor(of_era / 4)
    - math.floor(of_era / 100)
    + of_year
    - 719468
  local seconds = days * 86400 + tonumber(h) * 3600 + tonumber(mi) * 60 + tonumber(s)
  return seconds * 1000 + math.floor((tonumber('0' .. rest) or 0) * 1000)
end

return M
