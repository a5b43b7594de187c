/** Renders the templates of pods, in which `render` renders texts (docs/injection.md, N5). */
import type { Budget } from '../template/budget.ts'
import { type Functions, templateFunction } from '../template/function.ts'
import { parseTemplate, type Template } from '../template/template.ts'
import { fail, TemplateError, type Value } from '../template/values.ts'
import { InjectionError } from './pod.ts'

/** The most texts that a template renders, and within each other, since each is parsed; the work of parsing for each character. */
const most = { texts: 100, within: 10 } as const
const parsing = 20

/** Renders a template. Throws an {@link InjectionError} that names it. */
export function renderTemplate(template: Template, data: Value, budget: Budget): string {
  try {
    return template.render(data, { budget, functions: withRender(template, data) })
  } catch (error) {
    if (error instanceof TemplateError) throw new InjectionError(`template ${error.message}`)
    throw error
  }
}

/** The function that renders a text as a template with the data and functions of the one that calls it. */
function withRender({ functions: own }: Template, data: Value): Functions {
  let [texts, within] = [0, 0]
  const render = templateFunction(['string'], (budget, text) => {
    if (++texts > most.texts) return fail(`more than ${most.texts} texts are rendered`)
    if (within === most.within) return fail(`texts render each other deeper than ${most.within} levels`)
    budget.spend(text.length * parsing)
    within++
    const result = parseTemplate('text', text, own).render(data, { budget, functions })
    within--
    return result
  })
  const functions: Functions = new Map([['render', render]])
  return functions
}
