--- That the specs run in the editor, and against this checkout.
describe('the specs', function()
  it('run inside Neovim 0.10 or newer', function()
    assert.equal(1, vim.fn.has('nvim-0.10'))
  end)

  it('see the plugin of this checkout first', function()
    local spec = vim.uv.fs_realpath(debug.getinfo(1, 'S').source:sub(2))
    local plugin = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(spec)))
    assert.equal(plugin, vim.opt.runtimepath:get()[1])
  end)
end)
