"""What kind of question somebody asks, told by its form alone: tables of words by language, and no model."""
