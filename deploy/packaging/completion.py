# SPDX-License-Identifier: Apache-2.0
"""Completion of bash from the --help of the programs. It needs nothing but bash."""

_HEAD = """\
# Completion of bash for covey, made from the --help of its commands.

_covey() {
  local word=${COMP_WORDS[COMP_CWORD]} options words='' index
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '@COMMANDS@ --help --version' -- "$word"))
    return
  fi
  # After "--" comes a program with its arguments.
  for ((index = 2; index < COMP_CWORD; ++index)); do
    [[ ${COMP_WORDS[index]} != -- ]] || break
  done
  if ((index < COMP_CWORD)); then
    ((index + 1 < COMP_CWORD)) || COMPREPLY=($(compgen -c -- "$word"))
    return
  fi
  case ${COMP_WORDS[1]} in
"""

_TAIL = """\
    *) return ;;
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  else
    # Without a word of its own, bash offers files.
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  fi
}

complete -o bashdefault -o default -F _covey covey
"""


def bash(pages):
    """The script for `pages`, which begin with that of `covey`."""
    commands = " ".join(name for name, _ in pages[0].commands)
    text = _HEAD.replace("@COMMANDS@", commands)
    for page in pages[1:]:
        program, _, command = page.name.partition(" ")
        if program != "covey":
            continue
        options = " ".join(flag for option in page.options for flag in option.flags)
        text += f"    {command})\n      options='{options}'\n"
        if page.words():
            text += f"      words='{' '.join(page.words())}'\n"
        text += "      ;;\n"
    return text + _TAIL
