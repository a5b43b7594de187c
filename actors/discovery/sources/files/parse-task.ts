/** Pool task: parses one large configuration file. */

import { readOptOuts } from '../../../../src/config/opt-outs.ts'
import { type ParsedFile, parseConfigFile } from '../../../../src/config/parse.ts'
import { PatternChecks } from '../../../../src/config/patterns.ts'
import { meshNames } from '../../../../src/names/mesh-names.ts'

/** A file to parse. */
export interface ParseTask {
  readonly name: string
  readonly content: string
  readonly domain: string
  /** Names of the policy checks that are switched off, separated by commas. */
  readonly optOuts: string
  readonly revision: string
  readonly source: string
}

/** Runs on a thread of the pool. */
export default function parse(task: ParseTask): ParsedFile {
  const { name, content, domain, optOuts, revision, source } = task
  return parseConfigFile(name, content, meshNames(domain), new PatternChecks(), readOptOuts(optOuts), revision, source)
}
