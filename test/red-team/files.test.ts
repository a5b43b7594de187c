import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describeAttacks, namespace } from '../harness/red-team.ts'
import { until } from '../harness/until.ts'

const policy = (kind: string, spec: string, metadata = `{name: guard, namespace: ${namespace}}`) =>
  `apiVersion: security.mesh.io/v1\nkind: ${kind}\nmetadata: ${metadata}\nspec: ${spec}\n`
const rules = '[{to: [{operation: {paths: [/admin]}}]}]'
const denied = policy('AuthorizationPolicy', `{action: DENY, rules: ${rules}}`)

describeAttacks(
  'policies in files that cannot be read',
  (place) => {
    const { service } = place
    const at = (name: string) => join(service.dir, name)
    const admin = async () => (await place.call('/admin')).status
    const becomes = (status: number) => until(`/admin to be answered ${status}`, async () => (await admin()) === status)
    const guarded = async () => {
      // A failed earlier test may have left a named pipe here, and a write to it would block without a reader.
      rmSync(at('guard.yaml'), { recursive: true, force: true })
      service.write('guard.yaml', denied)
      await becomes(403)
      expect((await place.call('/')).status).to.equal(200)
    }
    const remove = async (...names: string[]) => {
      for (const name of names) rmSync(at(name), { recursive: true, force: true })
      await becomes(200)
    }
    /** Runs `act` while all threads of the service are stopped. */
    const whileHeld = async (act: () => void) => {
      const tasks = `/proc/${service.pid}/task`
      const stands = (task: string) => / T /.test(readFileSync(join(tasks, task, 'stat'), 'latin1'))
      process.kill(service.pid, 'SIGSTOP')
      try {
        await until('all threads to stand still', () => readdirSync(tasks).every(stands))
        act()
      } finally {
        process.kill(service.pid, 'SIGCONT')
      }
    }
    /** Waits until /debug/filez reports the file as unreadable. */
    const noticed = async () => {
      const troubles = async () => (await service.debug<{ unreadable: { path: string }[] }>('filez')).unreadable.map(({ path }) => path)
      await until('the file to be missed', async () => (await troubles()).includes(at('guard.yaml')))
    }

    // Each replacement is created under another name and renamed, so that the file is never absent.
    const places: Record<string, () => void> = {
      'a link to a directory': () => {
        mkdirSync(at('empty'), { recursive: true })
        symlinkSync('empty', at('other'))
      },
      'a named pipe': () => void execFileSync('mkfifo', [at('other')]),
      'an endless device': () => symlinkSync('/dev/zero', at('other')),
      'a dangling link': () => symlinkSync('nothing', at('other')),
    }
    for (const [what, put] of Object.entries(places))
      it(`stay in force when their file is replaced by ${what}`, async () => {
        await guarded()
        put()
        renameSync(at('other'), at('guard.yaml'))
        await noticed()
        expect(await admin()).to.equal(403)
        await remove('guard.yaml')
      })

    it('stay in force if their directory is replaced by a dangling link', async () => {
      mkdirSync(at('sub'))
      service.write('sub/guard.yaml', denied)
      await becomes(403)
      // While the directory is absent its policies would correctly be removed, so the service is stopped meanwhile.
      await whileHeld(() => {
        rmSync(at('sub'), { recursive: true })
        symlinkSync('nothing', at('sub'))
      })
      const troubles = async () => (await service.debug<{ unreadable: { path: string }[] }>('filez')).unreadable.map(({ path }) => path)
      await until('the directory to be missed', async () => (await troubles()).includes(at('sub')))
      expect(await admin()).to.equal(403)
      await remove('sub')
    })

    it('stay in force when the file becomes invalid, and are replaced by a denial of all requests after a restart', async () => {
      await guarded()
      service.write(
        'moved.yaml',
        `# [[[[[\n${policy('PeerAuthentication', '{}', `{name: other, namespace: ${namespace}}`)}---\n${denied.replace('DENY', '"DENY')}`,
      )
      renameSync(at('moved.yaml'), at('guard.yaml'))
      await service.output.says(/guard.yaml, document 2, AuthorizationPolicy\/shop\/guard: not YAML.*its last good state stays/)
      expect(await admin()).to.equal(403)
      await service.stop()
      await service.start()
      await until('the proxy to be back', async () => {
        const { clients } = await service.debug<{ clients: { connectionId: string }[] }>('adsz')
        return clients.some(({ connectionId }) => connectionId.includes(place.id))
      })
      // After the restart there is no last good state.
      await until('the strictest that it could mean', async () => (await place.call('/')).status === 403)
      await remove('guard.yaml')
    })

    const codings: Record<string, (text: string) => Buffer> = {
      'UTF-16': (text) => Buffer.from(text, 'utf16le'),
      'UTF-32': (text) => Buffer.from(Uint32Array.from(Buffer.from(text)).buffer).swap32(),
    }
    const written: Record<string, Record<string, string>> = {
      'a misspelt kind': { 'p.yaml': denied.replace('AuthorizationPolicy', 'AuthorisationPolicy') },
      'a kind in lower case': { 'p.yaml': denied.replace('AuthorizationPolicy', 'authorizationpolicy') },
      'a misspelt API group': { 'p.yaml': denied.replace('security.mesh.io', 'security.istio.oi') },
      'a missing namespace': { 'p.yaml': denied.replace(`, namespace: ${namespace}`, '') },
      'a numeric namespace': { 'p.yaml': denied.replace(`namespace: ${namespace}`, 'namespace: 5') },
      'a namespace in upper case': { 'p.yaml': denied.replace(`namespace: ${namespace}`, `namespace: ${namespace.toUpperCase()}`) },
      'a file extension in upper case': { 'p.YAML': denied },
      'UTF-16': { 'p.yaml': `\uFEFF${denied}` },
      'UTF-32': { 'p.yaml': denied },
      'a leading NUL character': { 'p.yaml': `\0${denied}` },
      'NUL characters inside': { 'p.yaml': denied.replace('kind', 'ki\0nd').replace('rules', 'ru\0les') },
      'a List around it': { 'p.yaml': `apiVersion: v1\nkind: List\nitems:\n- ${denied.trimEnd().replaceAll('\n', '\n  ')}\n` },
      'carriage returns as line ends': { 'p.yaml': `# first\r${denied.replaceAll('\n', '\r')}` },
      'two spellings of one field': {
        'p.yaml': denied.replace('action: DENY', 'selector: {matchLabels: {app: app}}, Selector: {matchLabels: {app: other}}, action: DENY'),
      },
      'a duplicate key in JSON': {
        'p.json': `{"apiVersion":"security.mesh.io/v1","kind":"AuthorizationPolicy","metadata":{"name":"guard","namespace":"${namespace}"},"spec":{"action":"DENY","rules":[{}],"action":"ALLOW"}}`,
      },
      'two definitions of one policy': { 'p.yaml': denied, 'q.yaml': policy('AuthorizationPolicy', '{rules: [{}]}') },
      'YAML errors in the documents around it': { 'p.yaml': `a: "never closed\n---\n${denied}---\nb: [\n` },
    }
    for (const [what, files] of Object.entries(written))
      it(`deny their path despite ${what}`, async () => {
        for (const [name, text] of Object.entries(files))
          if (Object.hasOwn(codings, what)) execFileSync('sh', ['-c', 'cat > "$0"', at(name)], { input: codings[what]?.(text) })
          else service.write(name, text)
        await becomes(403)
        await remove(...Object.keys(files))
      })
  },
  { side: 'sidecar' },
)
