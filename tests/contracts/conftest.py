import pytest

pytest.register_assert_rewrite("append_contract", "beside_contract", "event_store_contract", "order_contract", "racing")
