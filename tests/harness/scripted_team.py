"""A team that a scripted model plays: what every editor's tests of agents and tasks lead by hand."""

SCENARIO = r"""
rules:
  - when: {last_user: {regex: "You are the agent 'asker'"}, step: 0}
    answer:
      - call: {tool: message, arguments: {to: parent, text: "Which of the two?"}}
  - when: {last_tool: message}
    answer:
      - say: Then the second.
      - usage: {input_tokens: 1200, output_tokens: 34}
  - when: {last_user: {regex: "You are the agent 'sleeper'"}, step: 0}
    answer: [{say: I think about it.}, {hang: true}]
  - when: {last_user: {contains: "Sleep again"}}
    answer: [{hang: true}]
  - when: {last_user: {regex: "You are the agent 'typist'"}, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: typed.txt, content: "typed\n"}}
  - when: {last_tool: {name: write_file, status: ok}}
    answer: It is written.
default: Nothing to do.
"""
FEATURES = {"CALLBOARD_FEATURES": "agents.interrupts,agents.messaging"}
"""What the server must offer for them to ask, and to be corrected."""
