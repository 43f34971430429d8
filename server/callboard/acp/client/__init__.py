"""Agents of other makers as Callboard's own: a process for each session that one takes part in, and turns that it
drives.

`process` and `lines` are the program and its pipes, `connection` the conversation with it, `settling`, `modes` and
`offering` what its session is set to, `desk` what it may ask, `service` who has which. `driver` is one turn; `exchange` is
one prompt in it, `bounds` how much of what it tells is taken, `told` what of its calls is known, `asking` and `writes`
what it asks to be allowed, `questions`, `eliciting` and `forms` what it asks the person, `files` and `terminals` what it
has Callboard do.
"""
