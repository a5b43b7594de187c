import { expect } from 'chai'
import fc from 'fast-check'
import { parse } from 'yaml'
import { yamlText } from '../../../src/logging/yaml-text.ts'

describe('YAML of the log', () => {
  it('is in block style', () => {
    const value = {
      address: 'meshd.mesh-system.svc:15012',
      tracing: { lightstep: { address: 'l:80' } },
      list: [{ a: 1, b: [2, 'x'] }, [], 'yes'],
      empty: {},
    }
    expect(yamlText(value)).to.equal(
      [
        'address: meshd.mesh-system.svc:15012',
        'tracing:',
        '  lightstep:',
        '    address: l:80',
        'list:',
        '  - a: 1',
        '    b:',
        '      - 2',
        '      - x',
        '  - []',
        '  - "yes"',
        'empty: {}',
        '',
      ].join('\n'),
    )
  })

  it('reads as what was written', () => {
    const text = fc.oneof(
      fc.string(),
      fc.constantFrom('yes', 'null', '1e3', '-', 'a: b', 'a:', '#', 'x #y', '0x1', '.5', '.inf', '.nan', '/a', '2020-01-01', '~'),
    )
    const value = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 3 }, text, fc.integer(), fc.boolean(), fc.constant(null), tie('list'), tie('mapping')),
      list: fc.array(tie('value'), { maxLength: 4 }),
      mapping: fc.dictionary(text, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    })).value
    fc.assert(
      fc.property(value, (given) => {
        expect(parse(yamlText(given))).to.deep.equal(given)
      }),
    )
  })
})
