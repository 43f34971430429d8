"""The scripted agent that the tests of the Agent Client Protocol talk to."""

from pathlib import Path

from harness.process import scenario

SCENES = """
rules:
  - when: {last_user: {contains: instead}}
    answer: [{say: Something else then.}]
  - when: {last_user: {contains: stall}}
    answer: [{say: Thinking.}, {hang: true}]
  - when: {last_user: {contains: break}}
    answer: [{fail: {kind: modelError, message: the model is on fire, times: 1}}, {say: Better.}]
  - when: {last_user: {contains: too long}}
    answer: [{say: As I was saying}, {stop: max_tokens}]
  - when: {last_user: {contains: forbidden}}
    answer: [{say: No.}, {stop: refusal}]
  - when: {last_user: {contains: round and round}, last_tool: list_files, step: {max: 3}}
    answer: [{call: {tool: list_files, arguments: {path: "{{last_tool}}"}}}]
  - when: {last_user: {contains: round and round}, step: 0}
    answer: [{call: {tool: list_files, arguments: {path: .}}}]
  - when: {last_user: {contains: write}, step: 0}
    answer:
      - think: A file is wanted.
      - say: I write it.
      - call: {tool: write_file, arguments: {path: new.txt, content: "one\\ntwo\\n"}}
  - when: {last_user: {contains: change}, step: 0}
    answer:
      - call:
          tool: edit_file
          arguments: {path: old.txt, edits: [{old_text: two, new_text: TWO}]}
  - when: {last_user: {contains: look}, step: 0}
    answer:
      - call: {tool: read_file, arguments: {path: old.txt, start_line: 2}}
  - when: {last_user: {contains: print}, step: 0}
    answer:
      - call: {tool: run_command, arguments: {command: "echo to stdout; echo to stderr >&2"}}
  - when: {last_user: {contains: missing}, step: 0}
    answer: [{call: {tool: read_file, arguments: {path: nowhere.txt}}}]
  - when: {last_user: {contains: plan it}, step: 0}
    answer:
      - call:
          tool: update_plan
          arguments: {entries: [{content: First, status: completed}, {content: Then, status: pending}]}
  - when: {last_user: {contains: at length}}
    answer: [{say: {text: "0123456789abcdef\\n", repeat: 12000, chunk: 4000}}]
  - when: {last_user: {contains: how much}}
    answer:
      - say: So much.
      - usage: {input_tokens: 120, output_tokens: 12, context_tokens: 132, cost: 0.5, currency: EUR}
default:
  - say: "You said: {{last_user}}"
"""


def scenes(folder: Path) -> str:
    """Writes the scenes; the model that plays them."""
    return scenario(folder, SCENES)


def workspace(folder: Path) -> Path:
    """A folder with one file."""
    place = folder / "work"
    place.mkdir(exist_ok=True)
    (place / "old.txt").write_text("one\ntwo\nthree\n")
    return place
