/** Runs `pilot-discovery analyze` and `validate`: reads, analyzes, prints, and sets the exit status. */
import { jsonReport, sarifReport, textReport } from '../../../src/analysis/report.ts'
import { type AnalyzeOrder, fails } from '../../../src/cli/analyze-order.ts'
import { buildInfo } from '../../../src/cli/build-info.ts'
import { print } from '../../../src/cli/print.ts'
import { count } from '../../../src/model/counts.ts'
import { analyzeFiles } from './analyze-files.ts'

/** Prints what is found. The exit status is 1 when a finding has the level at which the order fails. */
export async function reportOn(order: AnalyzeOrder): Promise<void> {
  const { findings, read, ignored } = await analyzeFiles(order, process.stdin, process.env)
  const { stdout, stderr, env } = process
  if (order.form === 'json') print(jsonReport(findings))
  else if (order.form === 'sarif') print(sarifReport(findings, buildInfo().version))
  else if (findings.length > 0) print(textReport(findings, stdout.isTTY === true && !env.NO_COLOR))
  const unread =
    ignored.length === 0
      ? ''
      : `; ${count(ignored.length, 'file')} not read, since their names do not end in .yaml, .yml or .json: ${ignored.slice(0, 20).join(', ')}`
  if (order.form === 'text') stderr.write(`${count(findings.length, 'finding')} in ${count(read, 'file')}${unread}\n`)
  if (findings.some(({ level }) => fails(level, order.failOn))) process.exitCode = 1
}
