// What any receiver on AWS has to carry, and nothing around it: the two SDK clients and jose. Bundled only, to be weighed.
import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { createRemoteJWKSet, jwtVerify } from 'jose'

export const handler = (): unknown[] => [
  DynamoDBClient,
  PutItemCommand,
  SQSClient,
  SendMessageCommand,
  createRemoteJWKSet,
  jwtVerify,
]
