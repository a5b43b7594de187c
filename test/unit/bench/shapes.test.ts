import { expect } from 'chai'
import { files } from '../../../bench/mesh.ts'
import { type ShapeName, shapeFiles, shapes, viewersOf } from '../../../bench/shapes.ts'
import { readMeshConfig } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { names } from '../../harness/settings.ts'

const size = { namespaces: 10, services: 100 }

describe('shapes of the benchmark', () => {
  for (const [name, shape] of Object.entries(shapes))
    it(`${name}: its documents parse without faults or warnings`, () => {
      const read = shapeFiles(shape, size).map(([file, text]) => parseConfigFile(file, text, names))
      expect(read.flatMap(({ faults, warnings }) => [...faults, ...warnings])).to.deep.equal([])
      if (shape.mesh !== undefined) expect(readMeshConfig(shape.mesh)).to.have.property('value')
      const objects = read.flatMap((file) => file.objects)
      expect(objects.length > 0 || shape.mesh !== undefined).to.equal(name !== 'plain')
    })

  it('use no object name and no file name of the plain mesh', () => {
    const plain = files(size.services, size.namespaces)
    const objectsOf = (list: readonly (readonly [string, string])[]) =>
      list.flatMap(([file, text]) => parseConfigFile(file, text, names).objects).map(({ kind, namespace, name }) => `${kind}/${namespace}/${name}`)
    const taken = new Set([...plain.map(([file]) => file), ...objectsOf(plain)])
    for (const shape of Object.values(shapes)) {
      const own = shapeFiles(shape, size)
      expect([...own.map(([file]) => file), ...objectsOf(own)].filter((name) => taken.has(name))).to.deep.equal([])
    }
  })

  it('touch the same number of proxies in a mesh of any size', () => {
    for (const [name, touched] of [
      ['sidecars', 3],
      ['ten-hosts', 1],
      ['default-export', 1],
    ] as [ShapeName, number][])
      for (const namespaces of [10, 100, 1000]) expect(viewersOf(shapes[name], 11, { namespaces, services: namespaces * 10 })).to.have.length(touched)
  })
})
