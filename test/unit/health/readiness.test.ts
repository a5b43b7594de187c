import { expect } from 'chai'
import fc from 'fast-check'
import { Readiness } from '../../../src/health/readiness.ts'

const configured = 'cluster_manager.cds.update_success: 3\nlistener_manager.lds.update_success: 1\n'
const running = 'listener_manager.workers_started: 1\nserver.state: 0\n'

describe('readiness of the proxy', () => {
  it('queries the configuration counters, then the worker state, then nothing', () => {
    const rule = new Readiness()
    const asked = () => URL.parse(rule.question?.path ?? '', 'http://localhost')
    expect(asked()?.pathname).to.equal('/stats')
    expect(asked()?.search).to.match(/^\?usedonly&filter=/)
    expect(asked()?.searchParams.get('filter')).to.equal(String.raw`^(cluster_manager\.cds|listener_manager\.lds)\.(update_success|update_rejected)$`)
    expect(rule.question?.timeoutMs).to.equal(1000)
    expect(rule.take(configured)).to.equal(undefined)
    expect(asked()?.searchParams.get('filter')).to.equal(String.raw`^(server\.state|listener_manager\.workers_started)`)
    expect(rule.question?.timeoutMs).to.equal(3000)
    expect(rule.take(running)).to.equal(undefined)
    expect(rule.question).to.equal(undefined)
    expect(rule.take('')).to.equal(undefined)
  })

  it('reports how often configuration was accepted and rejected', () => {
    const rule = new Readiness()
    const fault = rule.take('cluster_manager.cds.update_success: 2\nlistener_manager.lds.update_rejected: 7\n')
    expect(fault).to.include('clusters 2 accepted, 0 rejected').and.include('listeners 0 accepted, 7 rejected')
    expect(rule.take('')).to.include('0 accepted')
  })

  it('remembers that configuration arrived while the workers are not running yet', () => {
    const rule = new Readiness()
    rule.take(configured)
    expect(rule.take('server.state: 2\nlistener_manager.workers_started: 1\n')).to.include('PRE_INITIALIZING')
    expect(rule.take('listener_manager.workers_started: 1\n')).to.include('not there')
    expect(rule.take('server.state: 0\n')).to.include('workers')
    expect(rule.take('server.state: 0\nlistener_manager.workers_started: 0\n')).to.include('workers')
    expect(rule.take(running)).to.equal(undefined)
  })

  it('is not reached by text that contains no valid statistic', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), (text) => {
        fc.pre(!/update_success/.test(text))
        expect(new Readiness().take(text)).to.be.a('string')
      }),
    )
    expect(new Readiness().take(configured.replaceAll(': ', ' '))).to.be.a('string')
    expect(new Readiness().take(configured.replaceAll(/\d/g, 'many'))).to.be.a('string')
    expect(new Readiness().take(`x${configured.replaceAll('\n', '\nx')}`)).to.be.a('string')
  })
})
