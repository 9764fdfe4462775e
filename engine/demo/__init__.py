"""`slotscope demo`: a real bug, live, from load to finding."""
