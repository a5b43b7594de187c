/**
 * The lives of classes and of groups, as states with the steps that are allowed between them. Both are *made*, are *wanted* while something
 * uses them, are *lingering* while they are kept although nothing wants them, and are *gone* when nothing refers to them any more.
 */

/** A state in the life of a class or group. */
export type LifeState = 'made' | 'wanted' | 'lingering' | 'gone'

/** For each state the states that may follow it. */
export type Steps = Readonly<Record<LifeState, readonly LifeState[]>>

/**
 * A class is wanted while it has connections, and lingers for a grace period after its last one closed. It never goes while it is wanted.
 */
export const classSteps: Steps = { made: ['wanted', 'gone'], wanted: ['lingering'], lingering: ['wanted', 'gone'], gone: [] }

/**
 * A group is wanted while a class is made of it, and lingers while classes only keep what it contains for a moment. A group that nothing
 * wants or keeps is as it was made, and only such a group goes.
 */
export const groupSteps: Steps = {
  made: ['wanted', 'lingering', 'gone'],
  wanted: ['made', 'lingering'],
  lingering: ['made', 'wanted'],
  gone: [],
}

/** Returns the next state. Throws when the step is not allowed. `what` names the class or group. */
export function step(steps: Steps, from: LifeState, to: LifeState, what: string): LifeState {
  if (!steps[from].includes(to)) throw new Error(`${what} is ${from} and cannot become ${to}`)
  return to
}
