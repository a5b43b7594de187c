/** Completion of command lines in the shells that people use. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { proxyFlags } from '../../src/cli/agent-flags.ts'
import { agentScript, discoveryScript } from '../harness/commands.ts'
import { runCommand, Service } from '../harness/service.ts'
import { hasShell, shellNames, Terminal } from '../harness/terminal.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

describe('completion', () => {
  const service = new Service({ flags: ['--writers', '1'] })
  const home = mkdtempSync(join(tmpdir(), 'mesh-home-'))
  const files = join(home, 'files')
  const env = { ...service.env, HOME: home, KUBECONFIG: '', XDG_CACHE_HOME: join(home, 'cache'), PATH: `${home}:${process.env.PATH}` }
  const scripts = { 'pilot-discovery': discoveryScript, 'pilot-agent': agentScript }
  let client: XdsClient | undefined

  before(async () => {
    for (const [name, script] of Object.entries(scripts))
      writeFileSync(join(home, name), `#!/bin/sh\nexec '${process.execPath}' '${script}' "$@"\n`, { mode: 0o755 })
    mkdirSync(files)
    writeFileSync(join(files, 'mesh-settings.yaml'), '')
    mkdirSync(join(home, '.kube'))
    const contexts = (...names: string[]) => `contexts: [${names.map((name) => `{name: ${name}, context: {cluster: ${name}}}`).join(', ')}]\n`
    writeFileSync(join(home, '.kube/config'), contexts('production', 'trial'))
    writeFileSync(join(files, 'other-clusters'), contexts('staging'))
    await service.start()
    client = await new XdsClient(service.grpcPort, sidecarNode('10.1.0.1', 'cart-0', 'orders'), true).connect().ready()
  })
  after(async () => {
    client?.close()
    await service.dispose()
    rmSync(home, { recursive: true, force: true })
  })

  for (const shell of shellNames)
    describe(`by ${shell}`, () => {
      let terminal: Terminal
      before(async function () {
        if (!hasShell(shell)) this.skip()
        terminal = new Terminal(shell, env, files)
        for (const [name, script] of Object.entries(scripts)) {
          // In a home without a cache: what the shell reads is all that was run.
          rmSync(join(home, 'cache', name), { recursive: true, force: true })
          await terminal.evaluate(`${name} autocomplete script ${shell}`)
          const { stdout, code } = await runCommand(['autocomplete'], { ...env, SHELL: `/bin/${shell}` }, script)
          expect(code).to.equal(0)
          expect(stdout).to.contain(`${name} autocomplete script ${shell} >> ~/.`)
        }
      })
      after(() => terminal?.close())

      it('ends what has one end: commands, flags, and their values', async () => {
        await terminal.completes('pilot-discovery proxy-st', 'proxy-status ')
        await terminal.completes('pilot-discovery proxy-config cl', 'proxy-config clusters ')
        await terminal.completes('pilot-discovery ca rotate --dry', '--dry-run ')
        await terminal.completes('pilot-discovery explain x y --type=c', '--type=cds')
        await terminal.completes('pilot-discovery discovery --registries Orchestrator,M', 'Orchestrator,Mock')
        await terminal.completes('pilot-discovery discovery --log_output_level ads:d', 'ads:debug')
        await terminal.completes('pilot-agent wait --timeout', '--timeoutSeconds ')
      })

      it('lists what has several', async () => {
        await terminal.lists('pilot-discovery proxy-config ', ['bootstrap', 'clusters', 'endpoints', 'listeners', 'routes', 'secrets'])
        await terminal.lists(
          'pilot-agent proxy --proxy',
          Object.keys(proxyFlags).filter((name) => name.startsWith('proxy')),
        )
      })

      it('knows the proxies, namespaces and pages of the server', async () => {
        await terminal.completes('pilot-discovery proxy-config clusters ca', 'clusters cart-0.orders')
        await terminal.completes('pilot-discovery proxy-status -n o', '-n orders')
        await terminal.completes('pilot-discovery request GET /debug/clusterz', '/debug/clusterz ')
        await terminal.completes('pilot-discovery request GET /vers', '/version ')
      })

      it('knows the contexts of the files with clusters', async () => {
        await terminal.completes('pilot-discovery proxy-status --context prod', '--context production')
        await terminal.completes('pilot-discovery proxy-status --kubeconfig other-clusters --context=st', '--context=staging')
      })

      it('completes files', async () => {
        await terminal.completes('pilot-discovery analyze mesh-s', 'analyze mesh-settings.yaml')
        await terminal.completes('pilot-discovery discovery --meshConfig mesh-s', '--meshConfig mesh-settings.yaml')
        await terminal.completes('pilot-discovery discovery --meshConfig=mesh-s', '--meshConfig=mesh-settings.yaml')
      })
    })

  it('is written for PowerShell', async () => {
    for (const [name, script] of Object.entries(scripts)) {
      expect((await runCommand(['autocomplete', 'powershell'], env, script)).code).to.equal(0)
      expect((await runCommand(['autocomplete', 'script', 'powershell'], env, script)).stdout).to.contain(`${name}.ps1`)
    }
  })

  it('prints nothing where no server answers', async () => {
    const nowhere = { ...env, MESHD_ADMIN_SOCKET: join(home, 'none.sock') }
    const { stdout, stderr, code } = await runCommand(['complete', '--', 'proxy-config', 'clusters', ''], nowhere, discoveryScript)
    expect([stdout, stderr, code]).to.deep.equal(['', '', 0])
  })
})
