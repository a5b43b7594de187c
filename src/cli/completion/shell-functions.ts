/** The functions by which shells complete command lines of a binary. They ask its hidden command `complete`, which knows commands, flags and values. */

/** Where the functions of a binary are, below the cache directory of its user, and what they are. */
export const completionFiles: Readonly<
  Record<'bash' | 'zsh' | 'fish', { readonly path: (bin: string) => string; readonly text: (bin: string) => string }>
> = {
  bash: { path: (bin) => `autocomplete/functions/bash/${bin}.bash`, text: bashFunction },
  zsh: { path: (bin) => `autocomplete/functions/zsh/_${bin}`, text: zshFunction },
  fish: { path: (bin) => `autocomplete/functions/fish/${bin}.fish`, text: fishFunction },
}

const functionOf = (bin: string): string => `_${bin.replaceAll('-', '_')}_words`

/**
 * bash cuts words at = and : besides, and replaces what is after the last of them, so that what stays is taken from each answer. Without an answer it
 * completes files. It runs on bash 3.2 too, which macOS has.
 */
function bashFunction(bin: string): string {
  return `${functionOf(bin)}() {
  local line=\${COMP_LINE:0:COMP_POINT} word about
  local -a words
  read -ra words <<< "$line"
  case $line in *[[:space:]]) words+=('') ;; esac
  local typed=\${words[\${#words[@]}-1]}
  local cut=\${COMP_WORDS[COMP_CWORD]}
  case $cut in = | :) cut='' ;; esac
  local stays=\${typed%"$cut"}
  COMPREPLY=()
  while IFS=$'\\t' read -r word about; do
    COMPREPLY+=("\${word#"$stays"}")
    case $word in *[:=]) compopt -o nospace 2> /dev/null ;; esac
  done < <("\${words[0]}" complete -- "\${words[@]:1}" 2> /dev/null)
}
complete -o default -F ${functionOf(bin)} ${bin}
`
}

function zshFunction(bin: string): string {
  return `#compdef ${bin}
${functionOf(bin)}() {
  local -a answers described
  local answer word
  answers=("\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2> /dev/null)}")
  for answer in $answers; do
    word=\${answer%%$'\\t'*}
    described+=("\${word//:/\\\\:}:\${answer#*$'\\t'}")
  done
  if (( \${#described} )); then
    if [[ $word == *[:=] ]]; then _describe -V ${bin} described -S ''; else _describe -V ${bin} described; fi
  else
    compset -P '--*='
    _files
  fi
}
${functionOf(bin)} "$@"
`
}

function fishFunction(bin: string): string {
  return `function ${functionOf(bin)}
  set -l words (commandline -opc)
  set -l typed (commandline -ct)
  set -l answers ($words[1] complete -- $words[2..] "$typed" 2> /dev/null)
  if test (count $answers) -gt 0
    printf '%s\\n' $answers
  else
    set -l stays (string match -r -- '^--[^=]*=' $typed)
    for path in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' $typed))
      printf '%s\\n' "$stays$path"
    end
  end
end
complete -c ${bin} -f -a '(${functionOf(bin)})'
`
}
