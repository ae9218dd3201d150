"""Clients of chat and embedding models behind two small protocols, the offline ones too. Knows no tenants and no database."""
