import { expect } from 'chai'
import type { LogLevels } from '../../../protocols/messages/log.ts'
import { changeScope, settingsOf } from '../../../src/logging/levels.ts'

const scopes = ['ads', 'all', 'ca', 'default']
const before: LogLevels = {
  output: { fallback: 'info', scopes: { ca: 'error' } },
  stackTrace: { fallback: 'none', scopes: {} },
  callers: ['all'],
}
const change = (form: Record<string, string>, levels = before) => changeScope(levels, scopes, new URLSearchParams(form))
const levelsOf = (levels: LogLevels) => Object.fromEntries(settingsOf(levels, scopes).map(({ name, output_level }) => [name, output_level]))
const callersOf = (levels: LogLevels) =>
  settingsOf(levels, scopes)
    .filter(({ log_callers }) => log_callers)
    .map(({ name }) => name)

describe('changes of log levels', () => {
  it('apply to one scope or to all', () => {
    expect(levelsOf(before)).to.deep.equal({ ads: 'info', ca: 'error', default: 'info' })
    expect(levelsOf(change({ scope: 'ads', output_level: 'debug' }))).to.deep.equal({ ads: 'debug', ca: 'error', default: 'info' })
    expect(levelsOf(change({ scope: 'all', output_level: 'warn' }))).to.deep.equal({ ads: 'warn', ca: 'warn', default: 'warn' })
    expect(change({ scope: 'ca', stack_trace_level: 'error' })).to.deep.equal({
      ...before,
      stackTrace: { fallback: 'none', scopes: { ca: 'error' } },
    })
    expect(before.output.scopes).to.deep.equal({ ca: 'error' })
  })

  it('switch callers on and off for one scope or for all', () => {
    expect(callersOf(before)).to.deep.equal(['ads', 'ca', 'default'])
    const less = change({ scope: 'ca', log_callers: 'false' })
    expect(callersOf(less)).to.deep.equal(['ads', 'default'])
    expect(callersOf(change({ scope: 'ca', log_callers: 'true' }, less))).to.deep.equal(['ads', 'ca', 'default'])
    expect(callersOf(change({ scope: 'all', log_callers: 'false' }, less))).to.deep.equal([])
    expect(change({ scope: 'ca', output_level: 'none' }).callers).to.equal(before.callers)
  })

  it('are rejected with the unknown scope, level or value', () => {
    expect(() => change({ scope: 'nobody' })).to.throw('unknown scope "nobody"; scopes are ads, all, ca, default')
    expect(() => change({})).to.throw('unknown scope ""')
    expect(() => change({ scope: 'ads', output_level: 'loud' })).to.throw('output_level: unknown level "loud"')
    expect(() => change({ scope: 'ads', log_callers: 'maybe' })).to.throw('log_callers: expected true or false')
  })
})
