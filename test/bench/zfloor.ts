import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { createRemoteJWKSet, jwtVerify } from 'jose'
export const handler = () => [DynamoDBClient, PutItemCommand, SendMessageCommand, SQSClient, createRemoteJWKSet, jwtVerify]
