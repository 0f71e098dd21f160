// All that is measured call by call, each by its name: our door and the floor, our proof of a push and other libraries'. One of them runs in a process.
import type { LambdaFunctionURLEvent } from 'aws-lambda'
import { door } from '../../functions/receive.ts'
import { createRelay } from '../../shared/relay.ts'
import { createAws } from './aws.ts'
import { type Floor, floor, makeClients, optionsOf, worker } from './floor.ts'
import { byJose, byOther, byUs } from './proofs.ts'
import { rival } from './rival.ts'
import type { Kind, Scene } from './scene.ts'

/** Does something once; the number says the how manieth time it is. */
export type Call = (n: number) => Promise<unknown>
export type Variant = (scene: Scene) => Call | Promise<Call>

type Handler = (event: LambdaFunctionURLEvent) => Promise<{ statusCode: number; body?: string }>

/** Ten milliseconds between two pushes: what one instance takes at most, for it serves one at a time. */
const paceMs = 10

/** Pushes of a kind in turn, each of which has to be answered so. */
export function pushing(scene: Scene, kind: Kind, status: number, handler: Handler): Call {
  const pushes = scene.pushes[kind]
  return async n => {
    const push = pushes[n % pushes.length]
    if (push === undefined) throw new Error('There are no pushes')
    const { statusCode } = await handler(push)
    if (statusCode !== status) throw new Error(`A push was answered ${statusCode}, not ${status}`)
  }
}

/** Our door, every check on, its log lines written to a device that takes everything. */
const ours =
  (kind: Kind, status: number, { seen = false } = {}): Variant =>
  scene => {
    const { handler } = ourDoor(scene, { seen })
    return pushing(scene, kind, status, handler)
  }

/** Our door before a stand-in for AWS, with a clock that each push moves on. */
export function ourDoor(scene: Scene, { seen = false, pace = paceMs, silent = false } = {}) {
  const aws = createAws(scene, seen)
  let at = scene.at
  const relay = createRelay('receive', scene.env, { now: () => at, ...(silent && { write: () => {} }) })
  aws.serve(relay.table.client, relay.queues.client)
  const handle = door(relay)
  const handler: Handler = event => {
    at += pace
    return handle(event)
  }
  return { aws, handler, now: () => at }
}

/** The floor's two clients before a stand-in for AWS, and its options. */
export function floorParts(scene: Scene) {
  const aws = createAws(scene)
  const clients = makeClients()
  aws.serve(clients.dynamodb, clients.sqs)
  const keys = JSON.stringify(scene.jwks)
  const options: Floor = { ...optionsOf(scene.env), fetch: async () => new Response(keys) }
  return { clients, options }
}

const theFloor =
  (kind: Kind, status: number): Variant =>
  scene => {
    const { clients, options } = floorParts(scene)
    return pushing(scene, kind, status, floor(clients, options))
  }

const express: Variant = async scene => {
  const { createHandler } = await rival('express')
  const { clients, options } = floorParts(scene)
  return pushing(scene, 'RS256', 202, createHandler(worker(clients, options)))
}

export const variants = {
  'floor RS256': theFloor('RS256', 202),
  'floor bad signature': theFloor('bad_signature', 401),
  'ours RS256': ours('RS256', 202),
  'ours ES256': ours('ES256', 202),
  'ours EdDSA': ours('EdDSA', 202),
  'ours token': ours('token', 202),
  'ours duplicate': ours('RS256', 200, { seen: true }),
  'ours wrong token': ours('wrong_token', 401),
  'ours bad signature': ours('bad_signature', 401),
  express,
  'verify jose': byJose,
  'verify ours': byUs,
  'verify jsonwebtoken + jwks-rsa': byOther('jsonwebtoken + jwks-rsa'),
  'verify aws-jwt-verify': byOther('aws-jwt-verify'),
  'verify fast-jwt, key given': byOther('fast-jwt, key given'),
  'verify fast-jwt, key asked for': byOther('fast-jwt, key asked for'),
} satisfies Record<string, Variant>

export type VariantName = keyof typeof variants
