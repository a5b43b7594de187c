/** When two states of an object are the same for proxies. */
import type { ConfigObject } from '../../protocols/data.ts'

/** The parts of an object that can affect a proxy. Values that are made from an object are cached by their identity. */
type Parts = Pick<ConfigObject, 'spec' | 'labels' | 'annotations'>

/**
 * Whether two states of an object are the same for proxies. If its source gave both the same uid and resource version, nothing is compared;
 * otherwise their content is, in the order of its fields.
 */
export function sameContent(before: ConfigObject, now: ConfigObject): boolean {
  const isSameVersion =
    now.resourceVersion !== '' &&
    now.uid !== '' &&
    now.resourceVersion === before.resourceVersion &&
    now.uid === before.uid &&
    now.source === before.source &&
    now.cluster === before.cluster
  if (isSameVersion) return true
  return (
    now.createdAt === before.createdAt &&
    now.healthy === before.healthy &&
    sameData(before.spec, now.spec) &&
    sameData(before.labels, now.labels) &&
    sameData(before.annotations, now.annotations)
  )
}

/** Returns `now` with the parts of `before`, which has the same content. */
export function withPartsOf<T extends ConfigObject>({ spec, labels, annotations }: Parts, now: T): T {
  return now.spec === spec && now.labels === labels && now.annotations === annotations ? now : { ...now, spec, labels, annotations }
}

/** Compares values of JSON. Written with loops, since it is called for every value of an object that a source repeats. */
function sameData(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false
    for (let index = 0; index < one.length; index++) if (!sameData(one[index], other[index])) return false
    return true
  }
  const fields = Object.keys(one)
  const others = Object.keys(other)
  if (fields.length !== others.length) return false
  for (let index = 0; index < fields.length; index++) {
    const field = fields[index] as keyof object
    if (field !== others[index] || !sameData(one[field], other[field])) return false
  }
  return true
}
