/** Rows of a set that are measured one after another, each on its own: one that fails does not cost the others. */
import { type Measure, progress } from './report.ts'

/** A row: its scenario, and what measures it. */
export interface Row {
  readonly scenario: string
  measure(): Promise<Measure>
}

/** Measures rows and reports each as it finishes. A row that fails becomes a measure with the reason (`failed`). */
export async function rowByRow(set: string, rows: readonly Row[], say: (text: string) => void = progress): Promise<Measure[]> {
  const measures: Measure[] = []
  for (const { scenario, measure } of rows) {
    try {
      const measured = await measure()
      measures.push(measured)
      say(`${set}: ${scenario}: ${JSON.stringify(measured.figures)}`)
    } catch (error) {
      const failed = error instanceof Error ? error.message : String(error)
      measures.push({ scenario, variant: set, cpu: Number.NaN, mib: 0, rss: Number.NaN, threads: {}, figures: { failed }, failed })
      say(`${set}: ${scenario} failed: ${failed}`)
    }
  }
  return measures
}

/** The rows that failed, one line each. */
export const failures = (measures: readonly Measure[]): string[] =>
  measures.flatMap(({ scenario, failed }) => (failed === undefined ? [] : [`${scenario}: ${failed}`]))
