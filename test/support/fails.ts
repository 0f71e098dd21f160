// Awaits an exchange that must fail, in one way and no other.
import { expect } from 'vitest'
import { NetError, type NetFault } from '../../shared/net.ts'

/** Resolves to the error if the work fails with this fault, after an answer's head with this status if one is given. */
export const fails = async (work: Promise<unknown>, fault: NetFault, status?: number): Promise<NetError> => {
  const error = await work.then(
    () => undefined,
    reason => reason,
  )
  expect(error).toBeInstanceOf(NetError)
  expect({ fault: error.fault, status: error.status }).toEqual({ fault, status })
  return error
}
