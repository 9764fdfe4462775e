"""One module for each page. Not named `pages`: Streamlit runs the files of such a folder by itself,
and an address opened on a fresh server would then miss the frame."""
