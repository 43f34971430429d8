"""Callboard as an agent of the Agent Client Protocol: ``callboard serve --acp``.

One client on stdin and stdout, over the same host as Callboard's own protocol. `greeting` answers
``initialize`` before the rest is imported; `handlers` are the methods; every session that the client has open
has one `follower`, which alone sends its updates and ends its prompts, so that their order needs no care
anywhere else.
"""
