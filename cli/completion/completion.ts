/** `llmp completion`: a thin script for each shell, which runs `llmp __complete`. */
import { oneOf } from '../../config/kinds.js';
import { command } from '../command.js';
import { EXIT } from '../../console/failure.js';

/**
 * The scripts take the output of `llmp __complete` as words and never evaluate it; cli/completion/complete-ids.ts also omits words with
 * special characters. The first line of the output is `words`, or `files` if the shell is to complete file names itself.
 */
const SCRIPTS = {
  bash: `# bash completion for llmp. In ~/.bashrc: source <(llmp completion bash)
_llmp() {
  local rest=\${COMP_LINE:0:COMP_POINT} words=() piece prefix kind word i
  # bash splits words at = and :, but llmp needs them whole.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    if ((i == 0)) || [[ $rest == [[:space:]]* ]]; then
      rest=\${rest#"\${rest%%[![:space:]]*}"}
      words+=("")
    fi
    piece=\${COMP_WORDS[i]}
    ((i == COMP_CWORD)) && piece=$rest
    words[\${#words[@]}-1]+=$piece
    rest=\${rest#"$piece"}
  done
  # bash replaces only the part after the last = or :.
  [[ $piece == [=:]* ]] && piece=
  word=\${words[\${#words[@]}-1]}
  prefix=\${word%"$piece"}
  words[\${#words[@]}-1]=\${word#[\\"\\']} # An open quote is not part of the word.
  COMPREPLY=()
  {
    IFS= read -r kind
    while IFS=$'\\t' read -r word _; do COMPREPLY+=("\${word#"$prefix"}"); done
  } < <(command llmp __complete -- "\${words[@]:1}" 2>/dev/null)
  [[ \${COMPREPLY[0]} == *: ]] && compopt -o nospace 2>/dev/null # The value of a key follows.
  [[ $kind == files ]] || return 0
  compopt -o default 2>/dev/null && return 0
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$piece")
}
complete -F _llmp llmp
`,
  zsh: `#compdef llmp
# zsh completion for llmp. In ~/.zshrc, after compinit: source <(llmp completion zsh)
_llmp() {
  local line
  local -a lines candidates
  lines=("\${(@f)$(command llmp __complete -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)}")
  if [[ $lines[1] == files ]]; then
    [[ $PREFIX == --*=* ]] && compset -P 1 '*='
    _files
    return
  fi
  for line in "\${(@)lines[2,-1]}"; do
    # In _describe a colon separates a word from its description, and a backslash escapes the next character.
    line=\${line//\\\\/\\\\\\\\}
    line=\${line//:/\\\\:}
    [[ -n $line ]] && candidates+=("\${line/$'\\t'/:}")
  done
  if [[ $candidates[1] == *\\\\::* ]]; then
    _describe llmp candidates -S '' # The value of a key follows.
  else
    _describe llmp candidates
  fi
}
# If zsh autoloads the file, the file is the function itself.
if [[ $funcstack[1] == _llmp ]]; then _llmp "$@"; else compdef _llmp llmp; fi
`,
  fish: `# fish completion for llmp: llmp completion fish > ~/.config/fish/completions/llmp.fish
function __llmp_complete
    set -l words (commandline -opc)
    set -e words[1]
    set -l current (commandline -ct | string replace -r '^["\\']' '') # An open quote is not part of the word.
    set -l lines (command llmp __complete -- $words "$current" 2>/dev/null)
    if test "$lines[1]" = files
        set -l option (string match -r '^--[^=]*=' -- "$current")
        for path in (__fish_complete_path (string replace -r '^--[^=]*=' '' -- "$current"))
            printf '%s%s\\n' "$option" "$path"
        end
        return
    end
    set -e lines[1]
    printf '%s\\n' $lines
end
complete -c llmp -e
complete -c llmp -f -a '(__llmp_complete)'
`,
} as const;

const [...shells] = Object.keys(SCRIPTS) as (keyof typeof SCRIPTS)[];
const shellKind = oneOf(...shells);

export const completionCommand = command({
  path: ['completion'],
  summary: 'print a shell completion script',
  examples: [
    ['completion bash', 'in ~/.bashrc: source <(llmp completion bash)'],
    ['completion zsh', 'in ~/.zshrc, after compinit: source <(llmp completion zsh)'],
    ['completion fish > ~/.config/fish/completions/llmp.fish', 'run once; fish loads the file by itself'],
  ],
  argument: { name: 'SHELL', meaning: shells.join(', '), required: true, many: false, kind: shellKind },
  options: {},
  run({ args: [shell = ''], output }) {
    const script = SCRIPTS[shellKind.parse(shell) ?? 'bash'];
    output.text(script.trimEnd());
    return Promise.resolve(EXIT.done);
  },
});
