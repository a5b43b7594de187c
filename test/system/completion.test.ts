import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { proxyFlags } from '../../src/cli/agent-flags.ts'
import { discoveryFlags } from '../../src/cli/discovery-flags.ts'
import { agentScript, discoveryScript } from '../harness/commands.ts'
import { runCommand } from '../harness/service.ts'

/** Prints what bash completes the words of its arguments to, by the function that the setup script has registered for the first of them. */
const complete = `eval "$(cat)"
name=$1
[[ $(complete -p "$name") =~ -F\\ ([^ ]+) ]]
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=\${#COMP_LINE}
"\${BASH_REMATCH[1]}" "$name"
printf '%s\\n' "\${COMPREPLY[@]}"`

for (const [name, script] of [
  ['pilot-discovery', discoveryScript],
  ['pilot-agent', agentScript],
] as const)
  describe(`completion of ${name} by bash`, () => {
    const home = mkdtempSync(join(tmpdir(), 'mesh-home-'))
    const env = { HOME: home, SHELL: '/bin/bash', XDG_CACHE_HOME: join(home, 'cache') }
    let setup = ''
    before(async () => {
      expect((await runCommand(['autocomplete', 'bash'], env, script)).code).to.equal(0)
      setup = (await runCommand(['autocomplete', 'script', 'bash'], env, script)).stdout
    })
    after(() => rmSync(home, { recursive: true, force: true }))

    const completed = (...words: readonly string[]) =>
      execFileSync('bash', ['--norc', '-c', complete, 'bash', name, ...words], { input: setup, encoding: 'utf8', env: { ...process.env, ...env } })
        .split('\n')
        .filter((word) => word !== '')

    it('names the commands, and those that begin as typed', () => {
      expect(completed('')).to.include.members([
        ...(name === 'pilot-agent' ? ['proxy', 'wait', 'mesh-iptables'] : ['discovery', 'ca', 'token']),
        'help',
      ])
      expect(completed('vers')).to.deep.equal(['version'])
    })

    it('names the flags of a command', () => {
      const [words, flag] = name === 'pilot-agent' ? [['wait', '--time'], '--timeoutSeconds'] : [['ca', 'rotate', '--dry'], '--dry-run']
      expect(completed(...words)).to.deep.equal([flag])
      const [command, flags] = name === 'pilot-agent' ? ['proxy', proxyFlags] : ['discovery', discoveryFlags]
      expect(completed(command, '--')).to.include.members([...Object.keys(flags), 'log_target'].map((one) => `--${one}`))
    })
  })
