"""JSON-RPC handlers, one module per family; each is a few lines over what the host offers."""
