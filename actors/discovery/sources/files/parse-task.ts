/** Pool task: parses one large configuration file, or one object of a cluster. */

import { readOptOuts } from '../../../../src/config/opt-outs.ts'
import { type ParsedFile, parseConfigDocument, parseConfigFile } from '../../../../src/config/parse.ts'
import { PatternChecks } from '../../../../src/config/patterns.ts'
import { meshNames } from '../../../../src/names/mesh-names.ts'

/** A file to parse, or an object that is no text any more. */
export interface ParseTask {
  readonly name: string
  readonly content: string | { readonly document: unknown }
  readonly domain: string
  /** Names of the policy checks that are switched off, separated by commas. */
  readonly optOuts: string
  readonly revision: string
  readonly source: string
}

/** Runs on a thread of the pool. */
export default function parse(task: ParseTask): ParsedFile {
  const { name, content, domain, optOuts, revision, source } = task
  const checks = { patterns: new PatternChecks(), optOuts: readOptOuts(optOuts), revision, source }
  if (typeof content !== 'string') return parseConfigDocument(name, content.document, meshNames(domain), checks)
  return parseConfigFile(name, content, meshNames(domain), checks.patterns, checks.optOuts, revision, source)
}
