"""Writes the manual pages and the bash completion of aon-run, aon and aon-node, from what their
--help prints (which aon-run renders from its option table, and aon from its commands).

    documents.py AON_RUN AON AON_NODE VERSION OUTPUT_FOLDER

OUTPUT_FOLDER gets man/man1/*.1, man/man8/*.8 and bash-completion/completions/*.
"""
import dataclasses
import pathlib
import re
import subprocess
import sys

_OPTION = re.compile(r"^\s+(?:(-\w),\s*)?(--[\w-]+)(?:\s([A-Z][\w.\s]*?))?(?:\s{2,}(.*))?$")
_COMMAND = re.compile(r"^  ([a-z][\w-]*)\s{2,}(\S.*)$")
_CHOICES = {"--call-graph": "fp lbr dwarf none", "--cupti-mode": "exclusive yield off",
            "--cupti-graph": "graph node", "--cupti-calls": "1 0"}
_FOLDERS = ("--output", "--spool-dir", "--rendezvous")
_EXIT_STATUS = {
    "aon-run": [("N", "what the program ended with"),
                ("2", "wrong use; the program was not started"),
                ("126, 127", "the program cannot be executed, or is not there")],
    "aon": [("0", "done"), ("1", "failed; one line on standard error says why"),
            ("2", "wrong use, or no job directory"),
            ("3", "the job is live, or somebody else is assembling it"),
            ("4", "aon diff --limit: slower than that"),
            ("5", "aon diff --limit: the interval holds the limit, or there is none")],
}  # fmt: skip


@dataclasses.dataclass
class Option:
    short: str
    name: str
    placeholder: str
    text: str

    def title(self):
        """As a manual page shows it."""
        names = ", ".join(f"\\fB{n}\\fR" for n in (self.short, self.name) if n)
        value = f" \\fI{self.placeholder}\\fR" if self.placeholder else ""
        return names.replace("-", "\\-") + value


@dataclasses.dataclass
class Program:
    name: str
    what: str
    usage: str
    options: list
    commands: list


def help_of(command):
    return subprocess.run(
        [*command, "--help"], check=True, capture_output=True, text=True, timeout=60
    ).stdout


def read_help(name, text):
    """Options and commands of one help text."""
    options, commands = [], []
    lines = text.splitlines()
    usage = next(l.split(":", 1)[1].strip() for l in lines if l.lower().startswith("usage:"))
    plain = [l for l in lines if l and not l.startswith(" ") and not l.endswith(":")]
    what = next(l for l in plain if not l.lower().startswith("usage:"))
    for line in lines:
        option, command = _OPTION.match(line), _COMMAND.match(line)
        if option:
            options.append(Option(*(part or "" for part in option.groups())))
        elif command:
            commands.append(command.groups())
        elif options and re.match(r"^\s{20,}\S", line):
            options[-1].text += " " + line.strip()
    return Program(name, what, usage, options, commands)


def escape(text):
    return text.replace("\\", "\\\\").replace("-", "\\-").replace("\n.", "\n\\&.")


def manual_page(program, version, subcommands, section=1):
    out = [f'.TH {program.name.upper()} {section} "" "aon {version}" "AON"', ".SH NAME"]
    out += [f"{escape(program.name)} \\- {escape(program.what)}"]
    out += [".SH SYNOPSIS", escape(program.usage), ".SH OPTIONS"]
    for option in program.options:
        out += [".TP", option.title(), escape(option.text)]
    if subcommands:
        out.append(".SH COMMANDS")
    for command in subcommands:
        out += [".SS " + escape(command.name), escape(command.what), ".PP", escape(command.usage)]
        for option in command.options:
            out += [".TP", option.title(), escape(option.text)]
    if program.name == "aon-run":
        out += [".SH ENVIRONMENT", "Each option is also read from AON_<NAME>, in capitals and with"]
        out += ["_ for \\-, and from the TOML file that AON_CONFIG names."]
        out += [".TP", "\\fBAON_DISABLE\\fR", "1: the program runs alone."]
    if program.name in _EXIT_STATUS:
        out.append(".SH EXIT STATUS")
    for code, meaning in _EXIT_STATUS.get(program.name, ()):
        out += [".TP", f"\\fB{code}\\fR", escape(meaning)]
    return "\n".join(out) + "\n"


def completion_of_run(program):
    names = " ".join(sorted(n for o in program.options for n in (o.short, o.name) if n))
    valued = [option for option in program.options if option.placeholder]
    with_value = "|".join(n for o in valued for n in (o.short, o.name) if n)
    cases = [f"    {name}) COMPREPLY=($(compgen -W '{words}' -- \"$word\")); return ;;"
             for name, words in _CHOICES.items()]  # fmt: skip
    cases.append(f"    -o|{'|'.join(_FOLDERS)}) COMPREPLY=($(compgen -d -- \"$word\")); return ;;")
    return f"""# bash completion of aon-run; written by packaging/documents.py
_aon_run() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} at
  for ((at = 1; at < COMP_CWORD; at++)); do # behind the program: its own completion
    case ${{COMP_WORDS[at]}} in
      --) _command_offset $((at + 1)); return ;;
      {with_value}) ((at++)) ;;
      -*) ;;
      *) _command_offset $at; return ;;
    esac
  done
  case $before in
{chr(10).join(cases)}
    {with_value}) return ;;
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W '{names}' -- "$word"))
  else
    COMPREPLY=($(compgen -c -- "$word"))
  fi
}}
complete -o default -F _aon_run aon-run
"""


def completion_of_tool(program, subcommands):
    cases = []
    for command in subcommands:
        names = " ".join(o.name for o in command.options)
        cases.append(f"    {command.name}) words='{names}' ;;")
    commands = " ".join(c.name for c in subcommands)
    own = " ".join(o.name for o in program.options)
    return f"""# bash completion of aon; written by packaging/documents.py
_aon() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words='{commands} {own}'
  ((COMP_CWORD == 1)) || case ${{COMP_WORDS[1]}} in
{chr(10).join(cases)}
  esac
  if [[ $word == -* ]] || ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    COMPREPLY=($(compgen -d -- "$word"))
  fi
}}
complete -o default -F _aon aon
"""


def main(aon_run, aon, aon_node, version, folder):
    manuals = pathlib.Path(folder) / "man" / "man1"
    for_admins = manuals.with_name("man8")
    completions = pathlib.Path(folder) / "bash-completion" / "completions"
    for path in (manuals, for_admins, completions):
        path.mkdir(parents=True, exist_ok=True)
    run = read_help("aon-run", help_of([aon_run]))
    tool = read_help("aon", help_of([aon]))
    commands = [read_help(name, help_of([aon, name])) for name, _ in tool.commands]
    (manuals / "aon-run.1").write_text(manual_page(run, version, []), encoding="utf-8")
    (manuals / "aon.1").write_text(manual_page(tool, version, commands), encoding="utf-8")
    page = manual_page(read_help("aon-node", help_of([aon_node])), version, [], section=8)
    (for_admins / "aon-node.8").write_text(page, encoding="utf-8")
    (completions / "aon-run").write_text(completion_of_run(run), encoding="utf-8")
    (completions / "aon").write_text(completion_of_tool(tool, commands), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
