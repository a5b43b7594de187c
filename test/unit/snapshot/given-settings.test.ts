import { expect } from 'chai'
import fc from 'fast-check'
import { GivenSettings } from '../../../src/snapshot/given-settings.ts'

describe('the settings of several sources', () => {
  it('count in the configured order, and a withdrawn one brings back the next, and the last the default', () => {
    const settings = new GivenSettings({ name: 'default' })
    settings.order(['files', 'orchestrator'])
    const steps: [source: string, name: string | undefined, differs: boolean, inForce: string, overruled: string[]][] = [
      ['orchestrator', 'o', true, 'o', []],
      ['unlisted', 'u', false, 'o', ['unlisted']],
      ['files', 'f', true, 'f', ['orchestrator', 'unlisted']],
      ['orchestrator', 'o2', false, 'f', ['orchestrator', 'unlisted']],
      ['files', undefined, true, 'o2', ['unlisted']],
      ['orchestrator', undefined, true, 'u', []],
      ['unlisted', undefined, true, 'default', []],
      ['unlisted', undefined, false, 'default', []],
    ]
    for (const [source, name, differs, inForce, overruled] of steps) {
      expect(settings.set(source, 'place', name === undefined ? undefined : { name }), `${source} ${name}`).to.equal(differs)
      expect(settings.inForce.value.name).to.equal(inForce)
      expect(settings.overruled.map((each) => each.source)).to.deep.equal(overruled)
    }
    expect(settings.inForce).to.deep.equal({ value: { name: 'default' }, source: '', place: '' })
    expect(settings.setDefault({ name: 'other' })).to.equal(true)
  })

  it('keep the identity of an equal value, whoever gives it', () => {
    const settings = new GivenSettings({ name: 'a' })
    const { value } = settings.inForce
    expect(settings.set('files', '/mesh', { name: 'a' })).to.equal(false)
    expect(settings.inForce.value).to.equal(value)
    expect(settings.inForce.place).to.equal('/mesh')
  })

  it('depend on what is given, not on its history', () => {
    const sources = fc.constantFrom('files', 'orchestrator', 'x', 'y')
    const step = fc.tuple(sources, fc.option(fc.nat(3), { nil: undefined }))
    fc.assert(
      fc.property(fc.array(step), fc.shuffledSubarray(['files', 'orchestrator', 'x']), (steps, order) => {
        const settings = new GivenSettings(-1)
        settings.order(['y'])
        const given = new Map<string, number>()
        for (const [source, value] of steps) {
          const before = settings.inForce.value
          const differs = settings.set(source, '', value)
          if (value === undefined) given.delete(source)
          else given.set(source, value)
          expect(differs).to.equal(before !== settings.inForce.value)
        }
        settings.order(order)
        const first = [...order, ...['files', 'orchestrator', 'x', 'y'].filter((source) => !order.includes(source))].find((source) =>
          given.has(source),
        )
        expect(settings.inForce.value).to.equal(first === undefined ? -1 : given.get(first))
      }),
    )
  })
})
