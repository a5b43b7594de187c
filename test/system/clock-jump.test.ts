/** A wall clock that jumps, through the real command: the root of the authority, its exchange, certificates, and what is said of it. */

import { X509Certificate } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { LedgerPage } from '../../protocols/messages/authority-status.ts'
import { OwnAuthority } from '../harness/own-authority.ts'
import { textOf } from '../harness/page-text.ts'
import { beginRotation } from '../harness/rotations.ts'
import type { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const day = 86_400_000
const jump = 4000 * day

describe('a wall clock that jumps 4,000 days ahead', function () {
  // Each start of the command and each command takes seconds on a busy machine.
  this.timeout(400_000)
  let own: OwnAuthority
  let service: Service

  beforeEach(async () => {
    own = await OwnAuthority.make(1)
    service = own.service
    Object.assign(service.env, {
      CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: '100ms',
      CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR: 'false',
    })
  })
  afterEach(() => own.dispose())

  const shift = (ms: number) => own.shift(ms)
  const ca = (...args: string[]) => own.ca(...args)
  const page = () => own.page()
  const started = () => own.start()
  const ready = async () => {
    const answer = await fetch(`http://127.0.0.1:${service.httpPort}/ready`)
    return { status: answer.status, text: await textOf(answer) }
  }
  const stored = () => readdirSync(join(service.authorityDir, 'keys'))
  const state = () => JSON.parse(readFileSync(join(service.authorityDir, 'state.json'), 'utf8')).state
  /** Requests a certificate with a token that is valid by both clocks. */
  const renew = () => own.certificate({ exp: (Date.now() + 2 * jump) / 1000 })
  const isValidNow = (pem = '') => {
    const { validFromDate, validToDate } = new X509Certificate(pem)
    return validFromDate.getTime() <= Date.now() && Date.now() < validToDate.getTime()
  }
  /** Checks of the root pass, of which each would take a stage further. */
  const checks = () => until('fifty checks', lapse(5000))
  const lapse = (ms: number) => {
    const end = performance.now() + ms
    return () => performance.now() > end
  }

  /** What holds while the clock is wrong and certificates of the old root are held. */
  async function expectNothingHappened(before: { root: string; stage: string }): Promise<void> {
    const { stage, authorities, retired } = state()
    expect({ root: authorities[0].id, stage }).to.deep.equal(before)
    expect(retired).to.deep.equal([])
    expect(stored()).to.include(`${before.root}.pem`)
    const [leaf, bundle] = await renew()
    expect(isValidNow(leaf), 'a certificate for those whose clock is right').to.equal(true)
    expect(isValidNow(bundle)).to.equal(true)
    expect(new X509Certificate(leaf ?? '').verify(new X509Certificate(bundle ?? '').publicKey)).to.equal(true)
  }

  it('at run time advances no stage and removes no key; in real time again everything goes on with the old root', async () => {
    await started()
    const [, bundle] = await renew()
    const root = stored()[0]?.replace('.pem', '') as string
    shift(jump)
    await service.output.says('contradicts the recorded time plus the elapsed time')
    await checks()
    await expectNothingHappened({ root, stage: 'stable' })
    const { status, text } = await ready()
    expect(status).to.equal(200)
    expect(text).to.match(/^the wall clock \(.*\) contradicts .*$/m)
    expect(text).to.match(/^root [0-9a-f]{16} \(O=cluster.local\) has expired on /m)
    expect(text).to.match(/^the serving certificate of the secured port has expired on /m)
    await service.output.says('the serving certificate of the secured port has expired on', 1, 1)
    const metrics = await service.metrics()
    expect(metrics).to.include('citadel_server_clock_disputed 2')
    for (const certificate of ['root', 'serving']) expect(metrics).to.include(`mesh_certificates_not_valid{certificate="${certificate}"} 1`)
    for (const force of [[], ['--force']]) {
      const { code, stdout, stderr } = await ca('rotate', ...force)
      expect(code).to.equal(255)
      expect(stderr).to.include('the rotation stays in stage stable: the wall clock (')
      expect(stdout).to.include('No stage begins: the wall clock (')
    }
    expect((await ca('show')).stdout)
      .to.include('Clock: disputed (it shows 20')
      .and.include('Not valid: root ')
    shift(0)
    await until('the end of the dispute', async () => (await ready()).text === '')
    await checks()
    await expectNothingHappened({ root, stage: 'stable' })
    expect((await renew())[1]).to.equal(bundle)
    expect((await service.metrics()).match(/^citadel_server_clock_disputed .*$/m)?.[0]).to.equal('citadel_server_clock_disputed 0')
    await beginRotation(ca)
  })

  it('at a start, in the middle of an exchange, and over kills, changes nothing either', async () => {
    service.env.CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL = '0'
    await started()
    await renew()
    const root = stored()[0]?.replace('.pem', '') as string
    await ca('rotate')
    service.env.CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL = '100ms'
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await service.stop(signal)
      shift(jump)
      await started()
      await checks()
      await expectNothingHappened({ root, stage: 'announce' })
      const { identities } = JSON.parse((await ca('ledger', '-o', 'json')).stdout) as LedgerPage
      expect(
        identities.map(({ identity }) => identity),
        'nobody is forgotten',
      ).to.deep.equal(['spiffe://cluster.local/ns/shop/sa/cart'])
    }
    await service.stop('SIGKILL')
    shift(0)
    await started()
    expect((await page()).clock.verdict).to.equal('agreed')
    expect((await ready()).text).to.equal('')
    await expectNothingHappened({ root, stage: state().stage })
  })

  it('is taken for right by command, with and without a server; a record that is lost is not', async () => {
    await started()
    await service.stop()
    shift(jump)
    const offline = await ca('accept-time')
    expect(offline.stdout, offline.stderr).to.match(/^The time 20\S+ is accepted. Before, the wall clock \(/)
    shift(0)
    await started()
    expect((await page()).clock.verdict).to.equal('disputed')
    await until('the dispute on the page', async () => (await ready()).text.includes('the wall clock ('))
    const online = await ca('accept-time')
    expect((await ready()).text, 'at once').not.to.include('the wall clock (')
    expect(online.stdout).to.match(/^The time 20\S+ is accepted. Before, the wall clock \(/)
    expect((await page()).clock.verdict).to.equal('agreed')
    expect((await ca('accept-time')).stdout).to.match(/It was not disputed\.\n$/)
    const root = stored()[0]?.replace('.pem', '') as string
    await service.stop('SIGKILL')
    const record = join(service.authorityDir, 'clock.json')
    expect(existsSync(record)).to.equal(true)
    rmSync(record)
    shift(jump)
    await started()
    await checks()
    const { authorities, stage } = state()
    expect([authorities[0].id, stage]).to.deep.equal([root, 'stable'])
    expect((await page()).clock.verdict).to.equal('unconfirmed')
    expect((await ca('rotate', '--force')).stderr).to.include('the machine was off since the last recorded time')
  })
})
