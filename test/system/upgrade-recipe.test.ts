/** The recipe of docs/operation.md, "Upgrades": a release beside the one that runs. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePort, freePorts } from '../../bench/ports.ts'
import { discoveryScript } from '../harness/commands.ts'
import { Output } from '../harness/output.ts'
import { runCommand } from '../harness/service.ts'

const page = readFileSync(fileURLToPath(new URL('../../docs/operation.md', import.meta.url)), 'utf8')
const [, block = ''] = /^## Upgrades$.*?```sh\n(.*?)```/ms.exec(page) ?? []

describe('the recipe for a release beside the one that runs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-upgrade-'))
  const children: ChildProcess[] = []
  const start = (command: string, env: Record<string, string> = {}) => {
    const child = spawn('bash', ['-c', command], { cwd: folder, env: { ...process.env, ...env } })
    children.push(child)
    const output = new Output()
    output.follow(child)
    return output
  }
  after(() => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })

  it('starts it with the same files, and shows its checks of policies', async () => {
    const lines = block.split('\n').map((line) => line.trim().replace(/ {2,}#.*$/, ''))
    expect(lines[1]).to.equal('export MESHD_ADMIN_SOCKET=next/admin.sock')
    const first = await freePorts(4)
    const [plain, secured, http, monitoring] = [first, first + 1, first + 2, first + 3]
    const node = `'${process.execPath}' '${discoveryScript}'`
    mkdirSync(join(folder, 'mesh'))
    writeFileSync(
      join(folder, 'mesh/a.yaml'),
      'apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: ns}\nspec: {}\n',
    )
    const old = start(
      `exec ${node} discovery --configDir mesh --grpcAddr localhost:${plain} --secureGRPCAddr localhost:${secured} --httpAddr localhost:${http} --monitoringAddr localhost:${monitoring} --ctrlz_port 0`,
    )
    await old.says(/ready after \d+ ms/)
    let recipe = lines[2]?.replace('pilot-discovery', `exec ${node}`) ?? ''
    for (const port of ['16010', '16080', '16014']) recipe = recipe.replace(port, String(await freePort()))
    const next = start(`${lines[0]} && ${lines[1]} && ${recipe}`)
    await next.says(/ready after \d+ ms/)
    const asked = await runCommand((lines[3] ?? '').split(' ').slice(1), { MESHD_ADMIN_SOCKET: join(folder, 'next/admin.sock') })
    expect([asked.code, JSON.parse(asked.stdout)[0]]).to.satisfy(([code, check]: [number, { check: string }]) => code === 0 && check.check !== '')
  })
})
