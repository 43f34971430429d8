-- What a person has accepted or rejected of a session's changes, as its metadata keep it: so it survives
-- restarts, and other windows and editors see it. Pure.
--
--   metadata["callboard.review"] = {
--     sessionId = "ses_...",  -- a fork inherits metadata, but its events are numbered anew
--     through = 40,           -- all up to this seq is settled: accepted, unless a file says otherwise
--     files = { ["/abs/path"] = { through = 57, verdict = "accepted" | "rejected" } },
--   }
local M = {}

M.KEY = 'callboard.review'

---So many rejected files are remembered as such below `through`; older ones are just settled.
M.MAX_REJECTED = 100

---@alias callboard.Verdict 'accepted'|'rejected'

---@class callboard.ReviewedFile
---@field through integer seq of the last change that it is about
---@field verdict callboard.Verdict

---@class callboard.Review
---@field through integer
---@field files table<string, callboard.ReviewedFile>

---@return callboard.Review
function M.new()
  return { through = 0, files = {} }
end

---@param value any
---@return integer?
local function seq_of(value)
  return type(value) == 'number' and value >= 0 and math.floor(value) or nil
end

---What the metadata say. They come from anywhere: what is not as it should be counts as not there.
---@param metadata table?
---@param session_id string
---@return callboard.Review
function M.read(metadata, session_id)
  local review = M.new()
  local kept = type(metadata) == 'table' and metadata[M.KEY] or nil
  if type(kept) ~= 'table' or kept.sessionId ~= session_id then
    return review
  end
  review.through = seq_of(kept.through) or 0
  for path, entry in pairs(type(kept.files) == 'table' and kept.files or {}) do
    local through = type(path) == 'string' and type(entry) == 'table' and seq_of(entry.through)
    if through then
      review.files[path] = {
        through = through,
        verdict = entry.verdict == 'rejected' and 'rejected' or 'accepted',
      }
    end
  end
  return review
end

---What was said of a change; nil when nothing was.
---@param review callboard.Review
---@param path string
---@param seq integer
---@return callboard.Verdict?
function M.verdict(review, path, seq)
  local entry = review.files[path]
  if entry and seq <= entry.through then
    return entry.verdict
  end
  return seq <= review.through and 'accepted' or nil
end

---Notes what was said of a file; what was said of later changes of it stands.
---@param review callboard.Review
---@param path string
---@param seq integer of the last change that was seen
---@param verdict callboard.Verdict
function M.note(review, path, seq, verdict)
  local entry = review.files[path]
  if not entry or seq >= entry.through then
    review.files[path] = { through = seq, verdict = verdict }
  end
end

---Takes over what another window noted meanwhile.
---@param review callboard.Review
---@param other callboard.Review
function M.merge(review, other)
  review.through = math.max(review.through, other.through)
  for path, entry in pairs(other.files) do
    M.note(review, path, entry.through, entry.verdict)
  end
end

---Keeps it small: raises `through` as far as nothing waits below it, and drops what it says as well.
---@param review callboard.Review
---@param waiting integer? seq of the first change of which nothing was said
---@param head integer the last seq that was seen
function M.trim(review, waiting, head)
  review.through = math.max(review.through, waiting and waiting - 1 or head)
  local rejected = {}
  for path, entry in pairs(review.files) do
    if entry.through <= review.through then
      if entry.verdict == 'accepted' then
        review.files[path] = nil
      else
        rejected[#rejected + 1] = path
      end
    end
  end
  table.sort(rejected, function(a, b)
    return review.files[a].through < review.files[b].through
  end)
  for i = 1, #rejected - M.MAX_REJECTED do
    review.files[rejected[i]] = nil
  end
end

---The metadata with it, all else in them as it was.
---@param metadata table?
---@param session_id string
---@param review callboard.Review
---@return table
function M.write(metadata, session_id, review)
  local with = {}
  for key, value in pairs(metadata or {}) do
    with[key] = value
  end
  with[M.KEY] = {
    sessionId = session_id,
    through = review.through,
    files = next(review.files) and review.files or vim.empty_dict(),
  }
  return with
end

return M
