"""A small shop whose input, output and questions are models of pydantic.

noizu-mcp list docs/examples/pydantic_shop.py
noizu-mcp call docs/examples/pydantic_shop.py find text=tea limit=2
noizu-mcp call docs/examples/pydantic_shop.py order --answers '{"name": "Ada", "gift": true}' \\
    'lines=[{"sku": "TEA-1", "quantity": 2}]' 'payment={"method": "card", "number": "4111"}'
"""

from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, Field, SecretStr, computed_field, field_validator

from noizu_mcp import Accept, Context, Server, ToolError


class Product(BaseModel):
    sku: str = Field(pattern=r"^[A-Z]+-[0-9]+$", description="Number of the product")
    name: str
    price: Decimal = Field(ge=0, decimal_places=2)


class Line(BaseModel):
    sku: str
    quantity: int = Field(1, ge=1, le=99)


class Card(BaseModel):
    method: Literal["card"]
    number: SecretStr


class Invoice(BaseModel):
    method: Literal["invoice"]
    due: date

    @field_validator("due")
    @classmethod
    def not_too_late(cls, due: date) -> date:
        if due > TODAY + timedelta(days=30):
            raise ValueError("an invoice is due within 30 days")
        return due


class Delivery(BaseModel):
    name: str = Field(title="Full name", min_length=2)
    gift: bool = Field(False, title="Wrap it as a gift?")


class Receipt(BaseModel):
    lines: list[Line]
    total: Decimal
    paid_by: Card | Invoice
    delivery: Delivery

    @computed_field(description="One sentence for the customer")
    def summary(self) -> str:
        return f"{sum(line.quantity for line in self.lines)} items for {self.delivery.name}"


# A constant, so that answers never change.
TODAY = date(2026, 1, 1)
PRODUCTS = {
    each.sku: each
    for each in (
        Product(sku="TEA-1", name="Green tea", price=Decimal("4.50")),
        Product(sku="TEA-2", name="Black tea", price=Decimal("3.90")),
        Product(sku="MUG-1", name="Mug", price=Decimal("12.00")),
    )
}


def find(text: str = "", limit: Annotated[int, Field(ge=1, le=50)] = 10) -> list[Product]:
    """Find products by a part of their name."""
    found = [each for each in PRODUCTS.values() if text.lower() in each.name.lower()]
    return found[:limit]


async def order(
    lines: Annotated[list[Line], Field(min_length=1)],
    payment: Annotated[Card | Invoice, Field(discriminator="method")],
    ctx: Context,
) -> Receipt:
    """Order products, and ask who gets them."""
    unknown = [line.sku for line in lines if line.sku not in PRODUCTS]
    if unknown:
        raise ToolError(f"No product {unknown[0]}; there are: {', '.join(PRODUCTS)}")
    answer = await ctx.elicit("Who gets the parcel?", Delivery)
    if not isinstance(answer, Accept):
        raise ToolError("The customer did not say who gets it; nothing was ordered")
    total = sum((PRODUCTS[line.sku].price * line.quantity for line in lines), Decimal(0))
    return Receipt(lines=lines, total=total, paid_by=payment, delivery=answer.content)


class PydanticShop(Server, name="pydantic-shop", version="1.0.0"):
    tools = [find, order]


if __name__ == "__main__":
    PydanticShop().run()
