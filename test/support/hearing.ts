// Runs before each test file: whatever its doors log must hold no secret that any test of this process used.
import { afterAll, expect } from 'vitest'
import { ear, listen } from './ear.ts'

listen()

afterAll(() => {
  expect(ear.leaks()).toEqual([])
})
