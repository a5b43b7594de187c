import { createServer } from 'node:net'
import { expect } from 'chai'
import { startAdmin } from '../../actors/discovery/admin/admin.ts'
import { Explanations } from '../../actors/discovery/admin/explanations.ts'
import { ReadinessJudge } from '../../actors/discovery/admin/readiness.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import { restartPolicy } from '../../actors/runtime/restarts.ts'
import { Supervisor } from '../../actors/runtime/supervisor.ts'
import { watchPolicy } from '../../actors/runtime/watchdog.ts'
import { readFeatures } from '../../src/config/features.ts'

const off = { fallback: 'none', scopes: {} } as const
const logOptions = { output: off, stackTrace: off, callers: [], asJson: false, targets: [], rotate: undefined }

describe('the HTTP servers', () => {
  it('report the flag of an address that another process took after it was found free', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const address = `127.0.0.1:${(taken.address() as { port: number }).port}`
    const log = createLogger(logOptions, () => {})
    const supervisor = new Supervisor({
      mode: 'in-thread',
      log,
      logOptions,
      logged: () => {},
      answers: {},
      watch: watchPolicy(0),
      policy: restartPolicy,
    })
    const { features } = readFeatures({})
    const start = (options: object) =>
      startAdmin({
        settings: async () => ({ settings: [], misspelt: [] }),
        supervisor,
        readiness: new ReadinessJudge(() => supervisor.states(), []),
        writers: 1,
        options: options as never,
        features,
        openOnLoopback: true,
        metrics: new MetricRegistry(),
        startedAt: 0,
        log,
        levels: { get: () => logOptions, set: () => Promise.resolve() },
        explanations: new Explanations(),
      }).then(
        () => 'started',
        (error: Error) => error.message,
      )
    try {
      for (const flag of ['httpAddr', 'monitoringAddr'])
        expect(await start({ httpAddr: '', monitoringAddr: '', ctrlzAddr: '', [flag]: address })).to.equal(
          `--${flag} ${address}: another process listens on it already (EADDRINUSE)`,
        )
    } finally {
      taken.close()
      await supervisor.drain([], 100)
    }
  })
})
