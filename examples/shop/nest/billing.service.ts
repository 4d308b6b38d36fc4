import { Injectable } from "@nestjs/common";
import { WithCircuitBreaker } from "switchgear/nestjs";

@Injectable()
export class BillingService {
  /** Named, not `BillingService.charge`: the services in Python call the circuit by this name, too. */
  @WithCircuitBreaker({ name: "billing" })
  async charge(order: string): Promise<string> {
    const response = await fetch(`${process.env.PROCESSOR_URL}/charge?order=${encodeURIComponent(order)}`);
    if (!response.ok) throw new Error(`the card processor answered ${response.status}`);
    return `charged order ${order}`;
  }
}
