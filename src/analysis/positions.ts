/** Finds the lines and columns of fields in files. Only the documents with findings are read once more for that. */
import { type Document, isAlias, isMap, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import { readKey } from '../config/kinds.ts'
import { type DocumentText, documentTexts } from '../config/yaml-documents.ts'
import { composing, keyText } from '../config/yaml-tree.ts'
import { meshNames } from '../names/mesh-names.ts'

/** A place in a file: line and column from 1, the column in UTF-16 code units. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** A document whose fields have been located. */
interface Located {
  readonly tree: Document
  readonly counter: LineCounter
  readonly line: number
}

/** The positions of fields in one file. */
export class FilePositions {
  readonly #texts: readonly DocumentText[]
  readonly #read = new Map<number, Located | undefined>()
  readonly #domain: string
  readonly #namespace: string
  readonly #canonicalKey: (key: string) => string

  /** `domain`: that of the mesh. `namespace`: that of objects that name none. */
  constructor(content: string, domain: string, namespace = 'default') {
    this.#texts = documentTexts(content)
    this.#domain = domain
    this.#namespace = namespace
    this.#canonicalKey = meshNames(domain).canonicalKey
  }

  /**
   * Returns the position of a field of an object, or of what is nearest to it: the mapping in which it is missing, or the object. `document`: its
   * number, from 1. `key`: that of the object, which finds it in a list. Undefined where there is no such document.
   */
  of(document: number, key: string | undefined, path: string): Position | undefined {
    const text = this.#texts[document - 1]
    if (!text) return undefined
    const located = this.#locate(document, text)
    const root = located?.tree.contents
    if (!located || !root) return { line: text.line + firstLine(text.text), column: 1 }
    const steps = stepsOf(path)
    const isInList = steps[0] === 'items' || typeof steps[0] === 'number'
    const object = (!isInList && key !== undefined && this.#itemOf(root, key)) || root
    const { line, col } = located.counter.linePos(offsetOf(located.tree, object, steps, this.#canonicalKey))
    return { line: located.line + line, column: col }
  }

  #locate(document: number, { text, line }: DocumentText): Located | undefined {
    if (this.#read.has(document)) return this.#read.get(document)
    const counter = new LineCounter()
    let located: Located | undefined
    try {
      // As documents are read: repeated keys were refused, and looking for them takes quadratic time.
      const tree = parseDocument(text, { ...composing, lineCounter: counter, prettyErrors: false })
      if (tree.errors.length === 0) located = { tree, counter, line }
    } catch {
      // Nested too deep: it was refused.
    }
    this.#read.set(document, located)
    return located
  }

  /** The item of a list that has a key; undefined: the document is no list, or has no such item. */
  #itemOf(root: Node, key: string): Node | undefined {
    const items = isSeq(root) ? root : isMap(root) ? root.get('items') : undefined
    if (!isSeq(items)) return undefined
    const { kind, namespace, name } = readKey(key, this.#domain)
    return items.items.find((item): item is Node => {
      if (!isMap(item)) return false
      const own = item.get('kind') ?? kind
      const given = item.getIn(['metadata', 'namespace']) || this.#namespace
      return own === kind && item.getIn(['metadata', 'name']) === name && (given === namespace || kind === 'Namespace')
    })
  }
}

/** The steps of a path: `spec.http[0].match`, `metadata.annotations[a.b/c]`. */
function stepsOf(path: string): (string | number)[] {
  return [...path.matchAll(/\[([^\]]*)\]|[^.[\]]+/g)].map(([whole, inner]) =>
    inner === undefined ? whole : /^\d+$/.test(inner) ? Number(inner) : inner,
  )
}

/**
 * The offset of the field at the end of the steps: of its key in a mapping, which may be the alias of a name of the mesh, of the item in a list. Where a
 * step is missing, what it is missing in.
 */
function offsetOf(tree: Document, root: Node, steps: readonly (string | number)[], canonicalKey: (key: string) => string): number {
  let offset = root.range?.[0] ?? 0
  let at: Node | null | undefined = root
  for (const step of steps) {
    if (isAlias(at)) at = at.resolve(tree)
    let next: unknown
    if (isSeq(at)) {
      next = at.items[Number(step)]
      if ((next as Node | undefined)?.range) offset = (next as Node).range?.[0] ?? offset
    } else if (isMap(at)) {
      const isKey = (key: string | undefined) => key !== undefined && (key === String(step) || canonicalKey(key) === step)
      const pair = at.items.find(({ key }) => isKey(keyText(key)))
      if (!pair) break
      offset = (pair.key as Node).range?.[0] ?? offset
      next = pair.value
    }
    if (!next) break
    at = next as Node
  }
  return offset
}

/** The number of the first line of a text that has more than white space, a comment or the beginning of a document, from 1. */
function firstLine(text: string): number {
  const lines = text.split('\n')
  const first = lines.findIndex((line) => !/^\uFEFF?\s*(?:#.*|---\s*)?$/.test(line))
  return first < 0 ? 1 : first + 1
}
